(** The same with Coq's own binary and unary numbers: nothing is exchanged but pairs, lists, booleans. *)
From CMS Require Import Recheck.
Require Import ExtrOcamlBasic.
Extraction "recheck.ml" recheck.
