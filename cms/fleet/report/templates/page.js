"use strict";
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const heads = [...head.parentElement.children];
    const at = heads.indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    const way = down ? -1 : 1;
    for (const each of heads) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = head.closest("table").tBodies[0];
    const numbers = head.classList.contains("number");
    const rows = [...body.rows].map((row) => {
      const key = row.cells[at].dataset.key;
      return { row, key: numbers ? Number(key) : key };
    });
    // what has no number stands below, whichever way the others go
    const compare = numbers
      ? (a, b) =>
          Number.isNaN(a.key) || Number.isNaN(b.key)
            ? Number.isNaN(a.key) - Number.isNaN(b.key)
            : way * (a.key - b.key)
      : new Intl.Collator("en", { numeric: true }).compare;
    rows.sort(numbers ? compare : (a, b) => way * compare(a.key, b.key));
    body.append(...rows.map((each) => each.row));
  });
}
