(** Costs are multiples of a common step: a bound may be rounded up to one. Weights in a limit are as
    well: what it allows may be rounded down. *)
From CMS Require Export Integers.

Definition gcd_of (costs : list Z) : Z := fold_right Z.gcd 0 costs.
(** Up to a multiple of the step; where all is for nothing, there is none. *)
Definition rounded (g : Z) (b : Q) : Q :=
  if 0 <? g then inject_Z (cdiv (Qnum b) (g * Zpos (Qden b)) * g) else b.
Lemma rounded_le g b c : (g | c) -> (b <= inject_Z c)%Q -> (rounded g b <= inject_Z c)%Q.
Proof.
  intros [k ->] H. unfold rounded. destruct (Z.ltb_spec 0 g); [|assumption].
  rewrite <- Zle_Qle. apply Z.mul_le_mono_nonneg_r; [lia|]. apply cdiv_le; [lia|].
  unfold Qle, inject_Z in H. simpl in H. lia.
Qed.

Lemma gcd_divides costs c : In c costs -> (gcd_of costs | c).
Proof.
  induction costs as [|x costs IH]; [intros []|]. unfold gcd_of. cbn [fold_right].
  intros [->|H]; [apply Z.gcd_divide_l|]. etransitivity; [apply Z.gcd_divide_r|now apply IH].
Qed.

Lemma divides_sum {A} g (f : A -> Z) l : (forall a, In a l -> (g | f a)) -> (g | sum f l).
Proof.
  induction l as [|a l IH]; intros H; [apply Z.divide_0_r|]. rewrite sum_cons.
  apply Z.divide_add_r; [apply H; now left|]. apply IH. intros x Hx. apply H. now right.
Qed.

(** The most that whole machines load a limit with. *)
Definition reach (L : ilimit) : Z :=
  let g := gcd_of (map snd (iweights L)) in if 0 <? g then igreatest L / g * g else igreatest L.

Lemma load_reach P L s : ivalid P s -> In L (ilimits P) -> load L s <= reach L.
Proof.
  intros V I. pose proof (ivalid_limits P s V L I) as H. unfold reach. set (g := gcd_of _).
  destruct (Z.ltb_spec 0 g); [|exact H].
  assert (g | load L s) as [q E].
  { apply divides_sum. intros M _. apply divides_sum. intros x Hx.
    destruct (Nat.eqb _ _); [|apply Z.divide_0_r]. apply gcd_divides. now apply in_map. }
  rewrite E in *. apply Z.mul_le_mono_nonneg_r; [lia|]. apply Z.div_le_lower_bound; lia.
Qed.
