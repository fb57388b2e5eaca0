(** Owners exist for a pseudoforest: a leaf owns its edge, and round a cycle each owns the next.

    An edge is an entry (i, j), of a block type and a job. A graph is a pseudoforest (no component has
    two cycles) if no set of its edges has fewer ends than edges. *)
From CMS Require Export Rounding.

Notation edge := (nat * nat)%type.
Definition pseudoforest (E : list edge) : Prop := forall E', NoDup E' -> incl E' E ->
  (length E' <= length (nodup Nat.eq_dec (map fst E')) + length (nodup Nat.eq_dec (map snd E')))%nat.

Lemma pseudoforest_incl E E' : pseudoforest E -> incl E' E -> pseudoforest E'.
Proof. intros H I F N IF. apply H; [exact N|]. eapply incl_tran; eassumption. Qed.

(** ** Sums over parts of a list *)
Lemma sum_incl {A} (f : A -> Z) l : forall m, NoDup l -> incl l m -> (forall a, 0 <= f a) ->
  sum f l <= sum f m.
Proof.
  induction l as [|a l IH]; intros m N I F; [now apply sum_nonneg|].
  destruct (in_split a m (I a (or_introl eq_refl))) as (m1 & m2 & ->). inversion N; subst.
  rewrite sum_cons, sum_split. apply Z.add_le_mono_l, IH; auto. intros x Hx.
  specialize (I x (or_intror Hx)). rewrite in_app_iff in *. destruct I as [|[<-|]]; tauto.
Qed.

Lemma sum_tight {A} (f g : A -> Z) l : (forall a, In a l -> f a <= g a) -> sum g l <= sum f l ->
  forall a, In a l -> f a = g a.
Proof.
  intros H S a Ha. destruct (in_split a l Ha) as (l1 & l2 & ->). rewrite !sum_split in S.
  specialize (H a Ha) as Fa. enough (sum f (l1 ++ l2) <= sum g (l1 ++ l2)) by lia.
  apply sum_le. intros x Hx. apply H. rewrite in_app_iff in *. simpl. tauto.
Qed.

Lemma sum_is x l : NoDup l -> sum (fun v => iverson (Nat.eqb x v)) l <= 1.
Proof.
  intros N. transitivity (sum (fun v => iverson (Nat.eqb x v)) [x]); [|simpl; rewrite Nat.eqb_refl; simpl; lia].
  transitivity (sum (fun v => iverson (Nat.eqb x v)) (filter (Nat.eqb x) l)).
  - rewrite sum_filter. apply sum_le. intros v _. destruct (Nat.eqb x v); simpl; lia.
  - apply sum_incl; [now apply NoDup_filter| |intros v; destruct (Nat.eqb x v); simpl; lia].
    intros v Hv. apply filter_In in Hv as [_ E]. apply Nat.eqb_eq in E. subst. now left.
Qed.

Lemma NoDup_both {A} (l m : list A) : NoDup l -> NoDup m -> (forall a, In a l -> ~ In a m) -> NoDup (l ++ m).
Proof.
  induction 1 as [|a l Ha _ IH]; intros M D; [exact M|]. simpl. constructor.
  - rewrite in_app_iff. specialize (D a (or_introl eq_refl)). tauto.
  - apply IH; [exact M|]. intros x Hx. apply D. now right.
Qed.

(** ** The search for owners

    A vertex is the number of a type, or k and the number of a job. Those that are free own nothing yet. *)
Section Graph.
Variable k : nat.
Definition at_end (v : nat) (e : edge) : bool := Nat.eqb (fst e) v || Nat.eqb (k + snd e) v.
Definition degree (E : list edge) (v : nat) : Z := sum (fun e => iverson (at_end v e)) E.
Definition same_edge (e e' : edge) : bool := Nat.eqb (fst e) (fst e') && Nat.eqb (snd e) (snd e').

(** A free vertex with one edge owns that; if there is none, an end of the first edge owns this. *)
Definition next (free : list nat) (E : list edge) (first : edge) : nat * edge :=
  match find (fun v => degree E v =? 1) free with
  | Some v => (v, match find (at_end v) E with Some e => e | None => first end)
  | None => (fst first, first)
  end.
Definition rest_of (free : list nat) (v : nat) : list nat := filter (fun x => negb (Nat.eqb v x)) free.
Definition edges_but (E : list edge) (e : edge) : list edge := filter (fun x => negb (same_edge e x)) E.

Fixpoint search_owners (fuel : nat) (free : list nat) (E : list edge) : list (nat * edge) :=
  match fuel, E with
  | S fuel, first :: _ =>
      let '(v, e) := next free E first in
      (v, e) :: search_owners fuel (rest_of free v) (edges_but E e)
  | _, _ => []
  end.

(** Every set of edges has as many free ends at least. *)
Definition touched (E : list edge) (v : nat) : bool := existsb (at_end v) E.
Definition roomy (free : list nat) (E : list edge) : Prop := forall E', NoDup E' -> incl E' E ->
  Z.of_nat (length E') <= sum (fun v => iverson (touched E' v)) free.

Lemma same_edge_iff e e' : same_edge e e' = true <-> e = e'.
Proof.
  unfold same_edge. rewrite andb_true_iff, !Nat.eqb_eq. destruct e, e'; cbn [fst snd].
  split; [intros [-> ->]|intros [= -> ->]]; auto.
Qed.

Lemma in_but E e x : In x (edges_but E e) <-> In x E /\ e <> x.
Proof.
  unfold edges_but. rewrite filter_In, negb_true_iff, <- not_true_iff_false, same_edge_iff. tauto.
Qed.

Lemma touched_degree E v : iverson (touched E v) <= degree E v.
Proof.
  assert (forall e, 0 <= iverson (at_end v e)) as F by (intros e; destruct (at_end v e); simpl; lia).
  unfold touched. destruct (existsb _ E) eqn:T; [|apply sum_nonneg; auto].
  apply existsb_exists in T as (e & He & T).
  pose proof (sum_one (fun e => iverson (at_end v e)) E e (fun x _ => F x) He) as O.
  cbn beta in O. rewrite T in O. exact O.
Qed.

Lemma degree_untouched E v : touched E v = false -> degree E v = 0.
Proof.
  intros T. unfold degree. rewrite <- (sum_zero E). apply sum_ext. intros e He.
  destruct (at_end v e) eqn:A; [|reflexivity]. apply not_true_iff_false in T. destruct T.
  apply existsb_exists. eauto.
Qed.

Lemma degree_incl E E' v : NoDup E' -> incl E' E -> degree E' v <= degree E v.
Proof. intros N I. apply sum_incl; auto. intros e. destruct (at_end v e); simpl; lia. Qed.

(** Each edge has two ends, and if it has no fewer that are free, its type is. *)
Lemma free_ends free e : NoDup free -> sum (fun v => iverson (at_end v e)) free <= 2
  /\ (2 <= sum (fun v => iverson (at_end v e)) free -> In (fst e) free).
Proof.
  intros N.
  assert (sum (fun v => iverson (at_end v e)) free
    <= sum (fun v => iverson (Nat.eqb (fst e) v)) free + sum (fun v => iverson (Nat.eqb (k + snd e) v)) free) as H.
  { rewrite <- sum_plus. apply sum_le. intros v _. unfold at_end.
    destruct (Nat.eqb (fst e) v), (Nat.eqb (k + snd e) v); simpl; lia. }
  pose proof (sum_is (fst e) free N). pose proof (sum_is (k + snd e) free N). split; [lia|].
  intros T. destruct (sum_pos (fun v => iverson (Nat.eqb (fst e) v)) free) as (v & Hv & P); [lia|].
  destruct (Nat.eqb_spec (fst e) v) as [->|]; [exact Hv|simpl in P; lia].
Qed.

Lemma next_holds free E first : NoDup free -> NoDup E -> In first E -> roomy free E ->
  let '(v, e) := next free E first in
  In v free /\ In e E /\ at_end v e = true /\ roomy (rest_of free v) (edges_but E e).
Proof.
  intros NF NE HF R. unfold next. destruct (find _ free) as [v|] eqn:L.
  - apply find_some in L as [Hv D]. apply Z.eqb_eq in D.
    destruct (find (at_end v) E) as [e|] eqn:F.
    2:{ exfalso. enough (degree E v = 0) by lia. apply degree_untouched, not_true_iff_false.
        intros T. apply existsb_exists in T as (e & He & T). pose proof (find_none _ _ F e He). congruence. }
    apply find_some in F as [He A]. split; [exact Hv|split; [exact He|split; [exact A|]]].
    intros E' N I. assert (touched E' v = false) as T.
    { apply not_true_iff_false. intros T. apply existsb_exists in T as (x & Hx & T).
      apply I, in_but in Hx as [Hx Ne]. pose proof (degree_incl E [e; x] v) as K.
      unfold degree at 1 in K. simpl in K. rewrite A, T in K. cbn [iverson] in K.
      enough (2 <= degree E v) by lia. apply K.
      - repeat constructor; simpl; intuition.
      - intros y [<-|[<-|[]]]; assumption. }
    unfold rest_of. rewrite sum_filter. etransitivity; [apply (R E' N)|].
    + intros x Hx. now apply I, in_but in Hx.
    + apply Z.eq_le_incl, sum_ext. intros x _. destruct (Nat.eqb_spec v x) as [<-|]; cbn [negb]; [|reflexivity].
      now rewrite T.
  - assert (LEAF : forall v, In v free -> 2 * iverson (touched E v) <= degree E v).
    { intros v Hv. pose proof (find_none _ _ L v Hv) as D. cbn beta in D. apply Z.eqb_neq in D.
      pose proof (touched_degree E v). destruct (touched E v); cbn [iverson] in *; [lia|].
      apply sum_nonneg. intros e _. destruct (at_end v e); simpl; lia. }
    assert (SWAP : forall E', sum (degree E') free = sum (fun e => sum (fun v => iverson (at_end v e)) free) E').
    { intros E'. apply sum_swap. }
    assert (TWO : forall E' : list edge, sum (fun _ => 2) E' = 2 * Z.of_nat (length E')).
    { intros E'. rewrite <- sum_length, <- sum_scale. apply sum_ext. intros; lia. }
    pose proof (R E NE (incl_refl E)) as ALL.
    assert (UP : sum (fun e => sum (fun v => iverson (at_end v e)) free) E <= 2 * Z.of_nat (length E)).
    { rewrite <- TWO. apply sum_le. intros e _. now apply free_ends. }
    assert (DOWN : 2 * sum (fun v => iverson (touched E v)) free <= sum (degree E) free).
    { rewrite <- sum_scale. now apply sum_le. }
    assert (ENDS : forall e, In e E -> sum (fun v => iverson (at_end v e)) free = 2).
    { apply (sum_tight _ (fun _ => 2)); [intros e _; now apply free_ends|].
      rewrite TWO, <- SWAP. lia. }
    assert (CYCLE : forall v, In v free -> 2 * iverson (touched E v) = degree E v).
    { apply sum_tight; [exact LEAF|]. rewrite sum_scale, SWAP. lia. }
    assert (IN : In (fst first) free).
    { apply (free_ends free first NF). rewrite (ENDS first HF). lia. }
    split; [exact IN|split; [exact HF|split]].
    { unfold at_end. now rewrite Nat.eqb_refl. }
    intros E' N I. assert (IE : incl E' E) by (intros x Hx; now apply I, in_but in Hx).
    unfold rest_of. rewrite sum_filter.
    enough (2 * Z.of_nat (length E')
      <= 2 * sum (fun v => if negb (Nat.eqb (fst first) v) then iverson (touched E' v) else 0) free
         + sum (fun v => iverson (Nat.eqb (fst first) v)) free) as K.
    { pose proof (sum_is (fst first) free NF). lia. }
    rewrite <- TWO, <- (sum_ext (fun e => sum (fun v => iverson (at_end v e)) free) _ E')
      by (intros e He; apply ENDS; auto).
    rewrite <- SWAP, <- sum_scale, <- sum_plus. apply sum_le. intros v Hv.
    assert (degree E v <= 2) as D2.
    { rewrite <- (CYCLE v Hv). destruct (touched E v); simpl; lia. }
    destruct (Nat.eqb_spec (fst first) v) as [<-|]; cbn [negb iverson].
    + pose proof (degree_incl E (first :: E') (fst first)) as K. unfold degree at 1 in K.
      rewrite sum_cons in K. fold (degree E' (fst first)) in K. unfold at_end at 1 in K.
      rewrite Nat.eqb_refl in K. cbn [orb iverson] in K.
      enough (1 + degree E' (fst first) <= degree E (fst first)) by lia. apply K.
      * constructor; [|exact N]. intros Hx. now apply I, in_but in Hx.
      * intros x [<-|Hx]; auto.
    + pose proof (degree_incl E E' v N IE). destruct (touched E' v) eqn:T; cbn [iverson]; [lia|].
      rewrite (degree_untouched E' v T). lia.
Qed.

(** Every edge gets an owner, one of its ends; and nobody owns two. *)
Lemma owners_found fuel : forall free E, NoDup free -> NoDup E -> roomy free E ->
  (length E <= fuel)%nat -> let found := search_owners fuel free E in
  incl E (map snd found) /\ NoDup (map fst found) /\ incl (map fst found) free
  /\ forall v e, In (v, e) found -> at_end v e = true.
Proof.
  induction fuel as [|fuel IH]; intros free [|first E0] NF NE R HL; cbn [search_owners];
    try (simpl in HL; lia); try (repeat split; [intros ? []|constructor|intros ? []|intros ? ? []]).
  set (E := first :: E0) in *. pose proof (next_holds free E first NF NE (or_introl eq_refl) R) as H.
  destruct (next free E first) as [v e]. destruct H as (Hv & He & A & R').
  destruct (IH (rest_of free v) (edges_but E e)) as (I1 & I2 & I3 & I4); auto.
  { now apply NoDup_filter. }
  { now apply NoDup_filter. }
  { enough (length (e :: edges_but E e) <= length E)%nat by (cbn [length] in *; lia).
    apply NoDup_incl_length.
    - constructor; [|now apply NoDup_filter]. intros X. now apply in_but in X.
    - intros x [<-|Hx]; [exact He|]. now apply in_but in Hx. }
  cbn [map fst snd]. repeat split.
  - intros x Hx. destruct (same_edge e x) eqn:S; [left; now apply same_edge_iff|right].
    apply I1, in_but. split; [exact Hx|]. intros X. apply same_edge_iff in X. congruence.
  - constructor; [|exact I2]. intros X. apply I3, filter_In in X as [_ X].
    now rewrite Nat.eqb_refl in X.
  - intros x [<-|Hx]; [exact Hv|]. apply I3, filter_In in Hx. tauto.
  - intros x y [[= <- <-]|Hx]; [exact A|now apply I4].
Qed.
End Graph.

(** ** Owners of the fractional entries of a matrix *)
Section Owners.
Variables k n : nat.
Definition edges_where (p : nat -> nat -> bool) : list edge :=
  filter (fun e => p (fst e) (snd e)) (list_prod (seq 0 k) (seq 0 n)).

Lemma in_edges p i j : In (i, j) (edges_where p) <-> (i < k)%nat /\ (j < n)%nat /\ p i j = true.
Proof. unfold edges_where. rewrite filter_In, in_prod_iff, !in_seq. cbn [fst snd]. intuition lia. Qed.

Lemma edges_NoDup p : NoDup (edges_where p).
Proof.
  apply NoDup_filter. generalize (seq_NoDup n 0) as Nn. generalize (seq_NoDup k 0) as Nk.
  generalize (seq 0 n) as m. induction 1 as [|i l Hi _ IH]; intros Nm; simpl; [constructor|].
  apply NoDup_both; [|auto|].
  - apply FinFun.Injective_map_NoDup; [|exact Nm]. intros x y [= E]. exact E.
  - intros [a b] Ha Hb. apply in_map_iff in Ha as (y & [= <- <-] & _). now apply in_prod_iff in Hb.
Qed.

Lemma pseudoforest_roomy E : (forall e, In e E -> (fst e < k)%nat /\ (snd e < n)%nat) ->
  pseudoforest E -> roomy k (seq 0 (k + n)) E.
Proof.
  intros B H E' NE I. specialize (H E' NE I).
  set (L := nodup Nat.eq_dec (map fst E') ++ map (Nat.add k) (nodup Nat.eq_dec (map snd E'))).
  assert (T : forall v, In v L -> (v < k + n)%nat /\ touched k E' v = true).
  { intros v Hv. unfold L in Hv. rewrite in_app_iff, nodup_In, !in_map_iff in Hv.
    destruct Hv as [(e & <- & He)|(j & <- & Hj)].
    - split; [specialize (B e (I e He)); lia|]. apply existsb_exists. exists e. split; [exact He|].
      unfold at_end. now rewrite Nat.eqb_refl.
    - rewrite nodup_In, in_map_iff in Hj. destruct Hj as (e & <- & He).
      split; [specialize (B e (I e He)); lia|]. apply existsb_exists. exists e. split; [exact He|].
      unfold at_end. now rewrite Nat.eqb_refl, orb_true_r. }
  transitivity (Z.of_nat (length L)).
  { unfold L. rewrite app_length, map_length. lia. }
  rewrite <- sum_length, (sum_ext _ (fun v => iverson (touched k E' v))).
  - apply sum_incl; [|intros v Hv; apply in_seq; destruct (T v Hv); lia|intros v; destruct (touched k E' v); simpl; lia].
    apply NoDup_both; [apply NoDup_nodup| |].
    + apply FinFun.Injective_map_NoDup; [|apply NoDup_nodup]. intros x y X. lia.
    + intros v Hv Hw. rewrite nodup_In, in_map_iff in Hv. destruct Hv as (e & <- & He).
      apply in_map_iff in Hw as (j & E0 & _). specialize (B e (I e He)). lia.
  - intros v Hv. destruct (T v Hv) as [_ ->]. reflexivity.
Qed.

Variable N : Z.
Variable Y : nat -> nat -> Z.
Definition fractional : list edge := edges_where (fun i j => negb (Y i j mod N =? 0)).
Definition found_owners : list (nat * edge) := search_owners k (length fractional) (seq 0 (k + n)) fractional.
Definition owned_by (v : nat) : option edge :=
  option_map snd (find (fun o => Nat.eqb (fst o) v) found_owners).
Definition up_found (i : nat) : option nat := option_map snd (owned_by i).
Definition down_found (j : nat) : option nat := option_map fst (owned_by (k + j)).

Lemma owned_is v e : NoDup (map fst found_owners) -> In (v, e) found_owners -> owned_by v = Some e.
Proof.
  unfold owned_by. induction found_owners as [|[w f] l IH]; [intros _ []|]. cbn [map fst find].
  intros ND [[= -> ->]|H]; inversion ND; subst; [now rewrite Nat.eqb_refl|].
  destruct (Nat.eqb_spec w v) as [->|]; [|auto]. destruct H2.
  now apply (in_map fst) in H.
Qed.

Theorem owners_exist : pseudoforest fractional -> owners_hold k n N Y up_found down_found = true.
Proof.
  intros H. destruct (owners_found k (length fractional) (seq 0 (k + n)) fractional)
    as (O1 & O2 & _ & O4); try (apply seq_NoDup || apply edges_NoDup || apply le_n).
  { apply pseudoforest_roomy; [|exact H]. intros [i j] He. apply in_edges in He. tauto. }
  fold found_owners in *. unfold owners_hold. rewrite forallb_forall. intros i Hi.
  rewrite forallb_forall. intros j Hj. apply in_seq in Hi, Hj.
  destruct (Y i j mod N =? 0) eqn:Z0; [reflexivity|]. cbn [orb].
  assert (In (i, j) fractional) as F by (apply in_edges; rewrite Z0; repeat split; lia).
  apply O1, in_map_iff in F as ([v e] & E & F). cbn [snd] in E. subst e.
  pose proof (O4 _ _ F) as A. pose proof (owned_is v _ O2 F) as O. unfold at_end in A. cbn [fst snd] in A.
  apply orb_true_iff in A as [A|A]; apply Nat.eqb_eq in A; subst v; apply orb_true_iff;
    [left; unfold up_found|right; unfold down_found]; rewrite O; cbn; apply Nat.eqb_refl.
Qed.
End Owners.
