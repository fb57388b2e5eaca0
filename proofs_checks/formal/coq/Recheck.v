(** The program: a problem, a schedule and a tree of prices, as files have them; and a verdict. *)
From CMS Require Export Scale Duality Better.

(** Numbers of a leaf are rational, in units of cost. *)
Record qleaf := { qprices : list Q; qlimit_prices : list Q; qmultipliers : list Q;
                  qproper : list (option Z) }.
Inductive qtree :=
| QLeaf (l : qleaf)
| QBranch (q : quantity) (r : Z) (below above : qtree).

(** Nothing need be proved of this: what comes out is checked. *)
Definition scale_leaf (P : problem) (l : qleaf) : leaf :=
  let d := denominator (qprices l ++ qlimit_prices l ++ qmultipliers l) in
  let limits := limit_denominator P in
  let scaled k := map (fun q => numer d q * (k * cost_denominator P)) in
  {| den := d * limits; prices := scaled limits (qprices l); limit_prices := scaled 1 (qlimit_prices l);
     multipliers := scaled limits (qmultipliers l); proper := qproper l |}.
Fixpoint scale_tree (P : problem) (t : qtree) : tree :=
  match t with
  | QLeaf l => Leaf (scale_leaf P l)
  | QBranch q r below above => Branch q r (scale_tree P below) (scale_tree P above)
  end.

Definition recheck (fuel : nat) (P : problem) (gs : option (list group)) (t : qtree) : verdict :=
  let I := scale P in
  if negb (sane I) then Rejected else
  match check fuel I [] (scale_tree P t) with
  | None => Rejected
  | Some None => Infeasible
  | Some (Some bound) =>
      let b := in_costs P (round_up I bound) in
      match gs with
      | None => AtLeast b
      | Some gs =>
          match check_schedule I gs with
          | None => Rejected
          | Some cost => let c := in_costs P (inject_Z cost) in
                         if Qle_bool c b then Optimal c else Between b c
          end
      end
  end.

(** The schedule that is valid is the one given, its groups written out as machines. *)
Definition shown (P : problem) (gs : option (list group)) (v : verdict) : Prop :=
  match v, gs with
  | Optimal c, Some gs | Between _ c, Some gs => valid P (expand gs) /\ (cost P (expand gs) == c)%Q
  | Optimal _, None | Between _ _, None => False
  | _, _ => True
  end.

Lemma schedule_shown P gs c : sane (scale P) = true -> check_schedule (scale P) gs = Some c ->
  valid P (expand gs) /\ (cost P (expand gs) == in_costs P (inject_Z c))%Q.
Proof.
  intros S F. destruct (schedule_sound _ gs c S F) as (V & C).
  split; [now apply valid_iff|]. rewrite cost_scale. now rewrite C.
Qed.

Theorem recheck_shows fuel P gs t : shown P gs (recheck fuel P gs t).
Proof.
  unfold recheck. destruct (sane (scale P)) eqn:S; cbn [negb]; [|exact I].
  destruct (check _ _ _ _) as [[bound|]|]; [|exact I|exact I]. destruct gs as [gs|]; [|exact I].
  destruct (check_schedule _ _) as [c|] eqn:F; [|exact I]. pose proof (schedule_shown P gs c S F).
  now destruct (Qle_bool _ _).
Qed.

Theorem recheck_sound fuel P gs t : means P (recheck fuel P gs t).
Proof.
  unfold recheck. destruct (sane (scale P)) eqn:S; cbn [negb]; [|exact I].
  destruct (check _ _ _ _) as [v|] eqn:E; [|exact I].
  pose proof (certificate_sound fuel (scale P) S _ v E) as K. destruct v as [bound|].
  2:{ intros s V. apply (K s). now apply valid_iff. }
  assert (L : at_least P (in_costs P (round_up (scale P) bound))).
  { intros s V. rewrite cost_scale. apply in_costs_le, round_up_sound; auto. now apply valid_iff. }
  destruct gs as [gs|]; [|exact L].
  destruct (check_schedule _ _) as [c|] eqn:F; [|exact I].
  assert (A : attained P (in_costs P (inject_Z c))).
  { exists (expand gs). now apply schedule_shown. }
  destruct (Qle_bool _ _) eqn:Q; split; try assumption.
  intros t' V'. apply Qle_bool_iff in Q. eapply Qle_trans; [exact Q|]. now apply L.
Qed.
