let integer = Z.of_string
let positive = Z.of_string
let natural = int_of_string
let shown_integer = Z.to_string
let shown_positive = Z.to_string
