(** From rational numbers to integers: each job, set and table of costs over a denominator of its own;
    a schedule is valid for both, and its costs differ by a factor. *)
From CMS Require Export Integers.

Definition denominator (l : list Q) : Z := fold_right (fun q d => Z.lcm (Zpos (Qden q)) d) 1 l.
Definition numer (d : Z) (q : Q) : Z := Qnum q * (d / Zpos (Qden q)).

Definition cost_denominator (P : problem) : Z := denominator (map cost_of (machine_types P)).

Definition scale_type (d : Z) (t : machine_type) : itype :=
  {| icost := numer d (cost_of t); ilimit := limit_of t |}.
Definition scale_shape (c : configuration) : ishape :=
  match c with
  | Listed m a => IListed m a
  | SizeBounded m sizes capacity n =>
      let d := denominator (capacity :: sizes) in
      IBounded m (map (numer d) sizes) (numer d capacity) n
  end.
Definition scale_job (x : job) : ijob :=
  let d := denominator (demand x :: supply x) in
  {| idemand := numer d (demand x); isupply := map (numer d) (supply x) |}.
Definition scale (P : problem) : iproblem :=
  let d := cost_denominator P in
  {| itypes := map (scale_type d) (machine_types P); iblock_types := block_types P;
     ishapes := map scale_shape (configurations P); ijobs := map scale_job (jobs P) |}.

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

Lemma type_scale P m :
  itype_at (scale P) m = scale_type (cost_denominator P) (nth m (machine_types P) no_type).
Proof.
  unfold itype_at. cbn [scale itypes].
  change no_itype with (scale_type (cost_denominator P) no_type). apply map_nth.
Qed.

Lemma covers_iff P s j :
  idemand (ijob_at (scale P) j) <= icovered s j (ijob_at (scale P) j)
  <-> Qle (demand (nth j (jobs P) no_job)) (covered s j (nth j (jobs P) no_job)).
Proof.
  unfold covered, icovered. rewrite job_scale. set (x := nth j (jobs P) no_job).
  cbn [scale_job idemand isupply]. set (d := denominator (demand x :: supply x)).
  assert (D : 0 < d) by apply denominator_pos.
  apply (is_le d); [exact D|apply is_numer; now left|].
  apply is_sum. intros b. destruct (serves j b); [|apply is_zero].
  apply is_nth. intros q Hq. apply is_numer. now right.
Qed.

Theorem valid_iff P s : ivalid (scale P) s <-> valid P s.
Proof.
  split; intros [A B C D E]; constructor.
  - intros M HM. destruct (A M HM) as (c & Hc & K). apply in_map_iff in Hc as (q & <- & Hq).
    exists q. split; [assumption|]. now apply cut_iff.
  - exact B.
  - intros b j Hb Hj. specialize (C b j Hb Hj). cbn [scale ijobs] in C. now rewrite map_length in C.
  - intros j Hj. apply covers_iff, D. cbn [scale ijobs]. now rewrite map_length.
  - intros m u Hm Hu. apply (E m u); [cbn [scale itypes]; now rewrite map_length|].
    now rewrite type_scale.
  - intros M HM. destruct (A M HM) as (c & Hc & K). exists (scale_shape c).
    split; [now apply (in_map scale_shape)|]. now apply cut_iff.
  - exact B.
  - intros b j Hb Hj. cbn [scale ijobs]. rewrite map_length. eauto.
  - intros j Hj. apply covers_iff, D. cbn [scale ijobs] in Hj. now rewrite map_length in Hj.
  - intros m u Hm Hu. cbn [scale itypes] in Hm. rewrite map_length in Hm.
    rewrite type_scale in Hu. eauto.
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
  { unfold icost_of, cost. apply is_sum. intros M. rewrite type_scale.
    cbn [scale_type icost].
    destruct (Nat.lt_ge_cases (type M) (length (machine_types P))) as [L|G].
    - apply is_numer. apply in_map. now apply nth_In.
    - rewrite nth_overflow by assumption. apply is_zero. }
  apply is_iff in H. unfold in_costs. rewrite Qred_correct, H.
  pose proof (denominator_pos (map cost_of (machine_types P))) as D. fold (cost_denominator P) in D.
  rewrite Qmult_comm. unfold Qdiv. rewrite <- Qmult_assoc, Qmult_inv_r; [ring|].
  intros E. unfold Qeq, inject_Z in E. simpl in E. lia.
Qed.
