(** The program in OCaml: integers become zarith's, natural numbers OCaml's own. *)
From CMS Require Import Recheck.
Require Import ExtrOcamlBasic ExtrOcamlZBigInt ExtrOcamlNatInt.
Extraction "recheck.ml" recheck.
