(** From rational numbers to integers: each job and set over a denominator of its own, all costs over
    one and all limits over one; a schedule is valid for both, and its costs differ by a factor. *)
From CMS Require Export Integers.

Definition denominator (l : list Q) : Z := fold_right (fun q d => Z.lcm (Zpos (Qden q)) d) 1 l.
Definition numer (d : Z) (q : Q) : Z := Qnum q * (d / Zpos (Qden q)).

Definition cost_denominator (P : problem) : Z := denominator (map cost_of (machine_types P)).

Definition limit_denominator (P : problem) : Z :=
  denominator (flat_map (fun g => greatest g :: weights g) (group_limits P)).

Definition type_limit (d : Z) (x : nat * machine_type) : list ilimit :=
  match limit_of (snd x) with
  | Some u => [{| iweights := [(fst x, d)]; igreatest := d * u |}]
  | None => []
  end.
Definition scale_limit (d : Z) (g : group_limit) : ilimit :=
  {| iweights := numbered (map (numer d) (weights g)); igreatest := numer d (greatest g) |}.
Definition scale_shape (c : configuration) : ishape :=
  match c with
  | Listed m a => IListed m a
  | SizeBounded m sizes capacity n =>
      let d := denominator (capacity :: sizes) in
      IBounded m (map (numer d) sizes) (numer d capacity) n
  end.
Definition scale_job (x : job) : ijob :=
  let d := denominator (demand x :: supply x) in
  {| idemand := numer d (demand x); isupply := map (numer d) (supply x);
     ireplicas := if Qle_bool (demand x) 0 then 0 else replicas x;
     iable := if replicas x <=? 0 then [] else map (fun f => iverson (is_replica x f)) (supply x) |}.
Definition scale (P : problem) : iproblem :=
  let d := limit_denominator P in
  {| icosts := map (numer (cost_denominator P)) (map cost_of (machine_types P));
     iblock_types := block_types P;
     ishapes := map scale_shape (configurations P); ijobs := map scale_job (jobs P);
     ilimits := flat_map (type_limit d) (numbered (machine_types P))
                ++ map (scale_limit d) (group_limits P) |}.

Lemma denominator_pos l : 0 < denominator l.
Proof.
  induction l as [|q l IH]; cbn [denominator fold_right]; [lia|]. fold (denominator l).
  pose proof (Z.lcm_nonneg (Zpos (Qden q)) (denominator l)).
  assert (Z.lcm (Zpos (Qden q)) (denominator l) <> 0) by (rewrite Z.lcm_eq_0; lia). lia.
Qed.

Lemma denominator_divides l q : In q l -> (Zpos (Qden q) | denominator l).
Proof.
  induction l as [|x l IH]; [simpl; tauto|]. cbn [denominator fold_right]. fold (denominator l).
  intros [->|H]; [apply Z.divide_lcm_l|]. etransitivity; [now apply IH|]. apply Z.divide_lcm_r.
Qed.

(** [n] over [d] is [q]. *)
Definition is (d n : Z) (q : Q) : Prop := n * Zpos (Qden q) = d * Qnum q.

Lemma is_iff d n q : is d n q <-> Qeq (inject_Z n) (Qmult (inject_Z d) q).
Proof. unfold is, Qeq, inject_Z, Qmult. cbn [Qnum Qden]. rewrite Pos.mul_1_l. lia. Qed.

Lemma is_numer l q : In q l -> is (denominator l) (numer (denominator l) q) q.
Proof.
  intros H. destruct (denominator_divides l q H) as [k ->]. unfold is, numer.
  rewrite Z.div_mul by lia. lia.
Qed.

Lemma is_zero d : is d 0 0%Q.
Proof. unfold is. simpl. lia. Qed.

Lemma is_nth l d i : (forall q, In q l -> is d (numer d q) q) -> is d (at_ (map (numer d) l) i) (qat l i).
Proof.
  intros H. unfold at_, qat. destruct (Nat.lt_ge_cases i (length l)) as [L|G].
  - rewrite (nth_indep _ 0 (numer d 0%Q)) by (rewrite map_length; lia).
    rewrite map_nth. apply H. now apply nth_In.
  - rewrite !nth_overflow by (rewrite ?map_length; lia). apply is_zero.
Qed.

Lemma is_sum {A} d (g : A -> Z) (f : A -> Q) l : (forall a, is d (g a) (f a)) -> is d (sum g l) (qsum f l).
Proof.
  intros H. apply is_iff. induction l as [|a l IH]; cbn [sum qsum fold_right]; [ring|].
  fold (sum g l) (qsum f l). rewrite inject_Z_plus, IH.
  specialize (H a). apply is_iff in H. rewrite H. ring.
Qed.

Lemma is_le d a b x y : 0 < d -> is d a x -> is d b y -> (a <= b <-> Qle x y).
Proof.
  intros Hd Ha Hb. apply is_iff in Ha, Hb. rewrite Zle_Qle, Ha, Hb.
  apply Qmult_le_l. change 0%Q with (inject_Z 0). now rewrite <- Zlt_Qlt.
Qed.

Lemma is_pos d a x : 0 < d -> is d a x -> (0 < a <-> Qlt 0 x).
Proof. unfold is, Qlt. simpl. intros. split; intros; nia. Qed.

Lemma cut_iff c M : icut (scale_shape c) M <-> cut_into c M.
Proof.
  destruct c as [m a|m sizes capacity n]; cbn [scale_shape icut cut_into]; [tauto|].
  set (d := denominator (capacity :: sizes)).
  assert (D : 0 < d) by apply denominator_pos.
  assert (N : forall i, is d (at_ (map (numer d) sizes) i) (qat sizes i)).
  { intros i. apply is_nth. intros q Hq. apply is_numer. now right. }
  assert (C : is d (numer d capacity) capacity) by (apply is_numer; now left).
  rewrite (is_le d _ _ _ _ D (is_sum d _ _ (blocks M) (fun b => N (fst b))) C).
  split; intros (H1 & H2 & H3); (split; [assumption|]); (split; [|assumption]); intros b Hb;
    apply (is_pos d _ _ D (N (fst b))); auto.
Qed.

Lemma job_scale P j : ijob_at (scale P) j = scale_job (nth j (jobs P) no_job).
Proof. unfold ijob_at. cbn [scale ijobs]. change no_ijob with (scale_job no_job). apply map_nth. Qed.

Lemma type_load d m u s :
  load {| iweights := [(m, d)]; igreatest := d * u |} s = d * machines_of_type m s.
Proof.
  unfold load, machines_of_type. rewrite <- sum_scale. apply sum_ext. intros M _. unfold weight.
  cbn [iweights sum fold_right fst snd]. rewrite Nat.eqb_sym. destruct (Nat.eqb _ _); cbn [iverson]; lia.
Qed.

Lemma group_iff P s g : In g (group_limits P) ->
  load (scale_limit (limit_denominator P) g) s <= igreatest (scale_limit (limit_denominator P) g)
  <-> (qsum (fun M => qat (weights g) (type M)) s <= greatest g)%Q.
Proof.
  intros Hg. set (d := limit_denominator P).
  assert (N : forall q, In q (greatest g :: weights g) -> is d (numer d q) q).
  { intros q Hq. apply is_numer, in_flat_map. eauto. }
  apply (is_le d); [apply denominator_pos| |apply N; now left].
  apply is_sum. intros M. unfold weight. cbn [scale_limit iweights].
  rewrite (sum_numbered 0 (fun i a => if Nat.eqb i (type M) then a else 0)).
  rewrite (sum_ext _ (fun i => if Nat.eqb (type M) i then at_ (map (numer d) (weights g)) i else 0))
    by (intros i _; now rewrite Nat.eqb_sym).
  rewrite sum_delta. destruct (Nat.ltb_spec (type M) (length (map (numer d) (weights g)))) as [L|G].
  - apply is_nth. intros q Hq. apply N. now right.
  - rewrite map_length in G. unfold qat. rewrite nth_overflow by exact G. apply is_zero.
Qed.

Lemma limits_iff P s : (forall L, In L (ilimits (scale P)) -> load L s <= igreatest L)
  <-> (forall m u, (m < length (machine_types P))%nat ->
         limit_of (nth m (machine_types P) no_type) = Some u -> machines_of_type m s <= u)
      /\ (forall g, In g (group_limits P) ->
            (qsum (fun M => qat (weights g) (type M)) s <= greatest g)%Q).
Proof.
  cbn [scale ilimits]. set (d := limit_denominator P).
  assert (D : 0 < d) by apply denominator_pos. split.
  - intros H. split.
    + intros m u Hm Hu. specialize (H {| iweights := [(m, d)]; igreatest := d * u |}).
      rewrite type_load in H. cbn [igreatest] in H. enough (d * machines_of_type m s <= d * u) by nia.
      apply H, in_app_iff. left. apply in_flat_map. exists (m, nth m (machine_types P) no_type).
      split; [now apply (in_numbered no_type)|]. unfold type_limit. cbn [fst snd]. rewrite Hu. now left.
    + intros g Hg. apply (group_iff P s g Hg), H, in_app_iff. right. now apply in_map.
  - intros [A B] L HL. apply in_app_iff in HL as [HL|HL].
    + apply in_flat_map in HL as ([m t] & Hm & HL). apply (in_numbered no_type) in Hm as [Hm ->].
      unfold type_limit in HL. cbn [fst snd] in HL. destruct (limit_of _) as [u|] eqn:U; [|destruct HL].
      destruct HL as [<-|[]]. rewrite type_load. cbn [igreatest]. specialize (A m u Hm U). nia.
    + apply in_map_iff in HL as (g & <- & Hg). apply (group_iff P s g Hg); auto.
Qed.

Lemma covers_iff P s j :
  idemand (ijob_at (scale P) j) <= icovered s j (isupply (ijob_at (scale P) j))
  <-> Qle (demand (nth j (jobs P) no_job)) (covered s j (nth j (jobs P) no_job)).
Proof.
  unfold covered, icovered. rewrite job_scale. set (x := nth j (jobs P) no_job).
  cbn [scale_job idemand isupply]. set (d := denominator (demand x :: supply x)).
  assert (D : 0 < d) by apply denominator_pos.
  apply (is_le d); [exact D|apply is_numer; now left|].
  apply is_sum. intros b. destruct (serves j b); [|apply is_zero].
  apply is_nth. intros q Hq. apply is_numer. now right.
Qed.

Lemma replicas_iff P s j (x := nth j (jobs P) no_job) :
  ireplicas (ijob_at (scale P) j) <= icovered s j (iable (ijob_at (scale P) j))
  <-> ((0 < demand x)%Q -> replicas x <= replicated s j x).
Proof.
  rewrite job_scale. fold x. cbn [scale_job ireplicas iable].
  assert (0 <= replicated s j x).
  { apply sum_nonneg. intros b _. destruct (_ && _); cbn [iverson]; lia. }
  assert (C : icovered s j
      (if replicas x <=? 0 then [] else map (fun f => iverson (is_replica x f)) (supply x))
    = if replicas x <=? 0 then 0 else replicated s j x).
  { unfold icovered, replicated. destruct (replicas x <=? 0).
    - rewrite (sum_ext _ (fun _ => 0)), sum_zero; [reflexivity|]. intros b _.
      destruct (serves j b); [now destruct (fst b)|reflexivity].
    - apply sum_ext. intros b _. destruct (serves j b); [|reflexivity]. cbn [andb].
      exact (map_nth (fun f => iverson (is_replica x f)) (supply x) 0%Q (fst b)). }
  rewrite C. destruct (Qle_bool (demand x) 0) eqn:Q.
  - apply Qle_bool_iff in Q. split; [intros _ D; exfalso; exact (Qlt_not_le _ _ D Q)|].
    intros _. destruct (replicas x <=? 0); lia.
  - assert ((0 < demand x)%Q) as D.
    { apply Qnot_le_lt. rewrite <- Qle_bool_iff. congruence. }
    destruct (Z.leb_spec (replicas x) 0); split; intros; auto; lia.
Qed.

Theorem valid_iff P s : ivalid (scale P) s <-> valid P s.
Proof.
  split; [intros [A B C D E]; apply limits_iff in E as [E F]|intros [A B C D R E F]]; constructor.
  - intros M HM. destruct (A M HM) as (c & Hc & K). apply in_map_iff in Hc as (q & <- & Hq).
    exists q. split; [assumption|]. now apply cut_iff.
  - exact B.
  - intros b j Hb Hj. specialize (C b j Hb Hj). cbn [scale ijobs] in C. now rewrite map_length in C.
  - intros j Hj. apply covers_iff, (D j (idemand _, isupply _)); [|now left].
    cbn [scale ijobs]. now rewrite map_length.
  - intros j Hj. apply replicas_iff, (D j (ireplicas _, iable _)); [|right; now left].
    cbn [scale ijobs]. now rewrite map_length.
  - exact E.
  - exact F.
  - intros M HM. destruct (A M HM) as (c & Hc & K). exists (scale_shape c).
    split; [now apply (in_map scale_shape)|]. now apply cut_iff.
  - exact B.
  - intros b j Hb Hj. cbn [scale ijobs]. rewrite map_length. eauto.
  - intros j r Hj Hr. cbn [scale ijobs] in Hj. rewrite map_length in Hj.
    destruct Hr as [<-|[<-|[]]]; [apply covers_iff|apply replicas_iff]; auto.
  - apply limits_iff. now split.
Qed.

(** A number of [scale P], as a cost of P. *)
Definition in_costs (P : problem) (b : Q) : Q := Qred (b / inject_Z (cost_denominator P)).

Lemma in_costs_le P b c : Qle b c <-> Qle (in_costs P b) (in_costs P c).
Proof.
  unfold in_costs. rewrite !Qred_correct. unfold Qdiv. symmetry. apply Qmult_le_r.
  apply Qinv_lt_0_compat. change 0%Q with (inject_Z 0). rewrite <- Zlt_Qlt. apply denominator_pos.
Qed.

Lemma cost_scale P s : Qeq (cost P s) (in_costs P (inject_Z (icost_of (scale P) s))).
Proof.
  assert (is (cost_denominator P) (icost_of (scale P) s) (cost P s)) as H.
  { unfold icost_of, cost, icost. apply is_sum. intros M. cbn [scale icosts].
    rewrite <- (map_nth cost_of (machine_types P) no_type (type M)).
    apply is_nth. intros q Hq. now apply is_numer. }
  apply is_iff in H. unfold in_costs. rewrite Qred_correct, H.
  pose proof (denominator_pos (map cost_of (machine_types P))) as D. fold (cost_denominator P) in D.
  rewrite Qmult_comm. unfold Qdiv. rewrite <- Qmult_assoc, Qmult_inv_r; [ring|].
  intros E. unfold Qeq, inject_Z in E. simpl in E. lia.
Qed.
