(** Every schedule can be tidied at no cost: no job has more blocks of a type than would serve it
    alone, and machines of sets have no idle blocks. So a machine of a set need not be thought of
    with more blocks of a type than all jobs together can use. *)
From CMS Require Export Integers.

(** How many blocks of type i serve a job by themselves; 0 if they do not serve it. *)
Definition need_row (i : nat) (r : Z * list Z) : Z :=
  let f := at_ (snd r) i in if 0 <? f then Z.max 0 (cdiv (fst r) f) else 0.
Definition need (i : nat) (x : ijob) : Z := fold_right (fun r => Z.max (need_row i r)) 0 (irows x).
Lemma need_row_le i x r : In r (irows x) -> need_row i r <= need i x.
Proof. unfold need. intros [<-|[<-|[]]]; cbn [irows fold_right]; lia. Qed.
Lemma need_nonneg i x : 0 <= need i x.
Proof. unfold need. cbn [irows fold_right]. lia. Qed.
Definition use (P : iproblem) (i : nat) : Z := sum (need i) (ijobs P).

Definition served (i j : nat) (s : schedule) : Z :=
  sum (fun b => iverson (Nat.eqb (fst b) i && serves j b)) (all_blocks s).
Lemma count_serves i j s : count i (filter (serves j) (all_blocks s)) = served i j s.
Proof.
  unfold count, served. rewrite sum_filter. apply sum_ext. intros b _.
  destruct (serves j b), (Nat.eqb (fst b) i); reflexivity.
Qed.
Definition busy (b : block) : Z := match snd b with Some _ => 1 | None => 0 end.

Definition tidy (P : iproblem) (s : schedule) : Prop :=
  forall M, In M s -> exists c, In c (ishapes P) /\ icut c M
    /\ match c with IListed _ _ => True | IBounded _ _ _ _ => forall i, count i (blocks M) <= use P i end.

(** One block serves another job than before, or none. *)
Section Exchange.
Variables (s1 s2 : schedule) (m : nat) (l1 l2 : list block) (b b' : block).
Hypothesis same : fst b' = fst b.
Let before := s1 ++ {| type := m; blocks := l1 ++ b :: l2 |} :: s2.
Let after := s1 ++ {| type := m; blocks := l1 ++ b' :: l2 |} :: s2.

Lemma exchanged (f : block -> Z) : sum f (all_blocks after) = sum f (all_blocks before) - f b + f b'.
Proof.
  clear same. unfold all_blocks, before, after. rewrite !sum_flat_map, !sum_split. cbn [blocks].
  rewrite !sum_split. lia.
Qed.

Lemma exchanged_machines (f : nat -> Z) :
  sum (fun M => f (type M)) after = sum (fun M => f (type M)) before.
Proof. clear same. unfold before, after. now rewrite !sum_split. Qed.

Lemma exchanged_in x : In x (all_blocks after) -> x = b' \/ In x (all_blocks before).
Proof.
  clear same. unfold all_blocks, before, after. rewrite !flat_map_app. cbn [flat_map blocks].
  rewrite !in_app_iff. simpl. intuition.
Qed.

Lemma exchanged_cut c : icut c {| type := m; blocks := l1 ++ b :: l2 |} ->
  icut c {| type := m; blocks := l1 ++ b' :: l2 |}.
Proof.
  assert (S : forall w : nat -> Z, sum (fun x => w (fst x)) (l1 ++ b' :: l2)
    = sum (fun x => w (fst x)) (l1 ++ b :: l2)) by (intros; rewrite !sum_split, same; reflexivity).
  destruct c as [m' a|m' sizes cap n]; cbn [icut blocks type].
  - intros [H1 H2]. split; [assumption|]. intros t. rewrite <- H2.
    apply (S (fun x => iverson (Nat.eqb x t))).
  - intros (H1 & H2 & H3 & H4). split; [assumption|split; [|split]].
    + intros x Hx. apply in_app_iff in Hx as [Hx|[<-|Hx]].
      * apply H2. apply in_app_iff. auto.
      * rewrite same. apply (H2 b). apply in_app_iff. simpl. auto.
      * apply H2. apply in_app_iff. simpl. auto.
    + now rewrite (S (at_ sizes)).
    + intros l Hl. specialize (H4 l Hl). rewrite app_length in *. exact H4.
Qed.
End Exchange.

Lemma release P s i j : sane P = true -> ivalid P s -> (j < length (ijobs P))%nat ->
  need i (ijob_at P j) < served i j s ->
  exists s', ivalid P s' /\ icost_of P s' = icost_of P s
    /\ sum busy (all_blocks s') = sum busy (all_blocks s) - 1.
Proof.
  intros Hs V Hj Hn.
  pose proof (need_nonneg i (ijob_at P j)).
  destruct (sum_pos (fun b => iverson (Nat.eqb (fst b) i && serves j b)) (all_blocks s))
    as (b & Hb & B); [unfold served in *; lia|].
  destruct (Nat.eqb (fst b) i && serves j b) eqn:E; [|simpl in B; lia].
  apply andb_true_iff in E as [E1 E2]. apply Nat.eqb_eq in E1. unfold serves in E2.
  destruct b as [i' [j'|]]; [|discriminate]. cbn [fst snd] in *. apply Nat.eqb_eq in E2. subst i' j'.
  apply in_flat_map in Hb as (M & HM & Hb). apply in_split in HM as (s1 & s2 & ->).
  apply in_split in Hb as (l1 & l2 & Hb). destruct M as [m l]. cbn [blocks] in Hb. subst l.
  exists (s1 ++ {| type := m; blocks := l1 ++ (i, None) :: l2 |} :: s2).
  pose proof (exchanged s1 s2 m l1 l2 (i, Some j) (i, None)) as R. split; [|split].
  - destruct V as [V1 V2 V3 V4 V5]. constructor.
    + intros M HM. apply in_app_iff in HM as [HM|[<-|HM]].
      * apply V1. apply in_app_iff. auto.
      * destruct (V1 _ (in_elt _ _ _)) as (c & Hc & K). exists c. split; [assumption|].
        now apply (exchanged_cut m l1 l2 (i, Some j) (i, None) eq_refl).
      * apply V1. apply in_app_iff. simpl. auto.
    + intros b Hb. apply (exchanged_in s1 s2 m l1 l2 (i, Some j)) in Hb as [->|Hb]; [|now apply V2].
      apply (V2 (i, Some j)). apply in_flat_map. eexists. split; [apply in_elt|apply in_elt].
    + intros b j' Hb Hj'. apply (exchanged_in s1 s2 m l1 l2 (i, Some j)) in Hb as [->|Hb]; [discriminate|eauto].
    + intros j' r Hj' Hr. specialize (V4 j' r Hj' Hr). unfold icovered in *. rewrite R.
      change (serves j' (i, Some j)) with (Nat.eqb j j'). change (serves j' (i, None)) with false.
      cbn [fst].
      destruct (Nat.eqb_spec j j') as [<-|]; [|rewrite Z.sub_0_r, Z.add_0_r; exact V4].
      set (x := ijob_at P j) in *. set (all := all_blocks _) in *.
      pose proof (row_nonneg P j r i Hs Hr) as F0.
      assert (at_ (snd r) i * served i j (s1 ++ {| type := m; blocks := l1 ++ (i, Some j) :: l2 |} :: s2)
        <= sum (fun b => if serves j b then at_ (snd r) (fst b) else 0) all) as K.
      { unfold served. fold all. rewrite <- sum_scale. apply sum_le. intros b _.
        pose proof (row_nonneg P j r (fst b) Hs Hr) as F1.
        destruct (serves j b); rewrite ?andb_false_r, ?andb_true_r; cbn [iverson]; [|lia].
        destruct (Nat.eqb_spec (fst b) i) as [->|]; simpl; lia. }
      pose proof (need_row_le i x r Hr) as Le. unfold need_row in Le.
      destruct (Z.ltb_spec 0 (at_ (snd r) i)) as [F|F].
      * pose proof (cdiv_ge (fst r) (at_ (snd r) i) F). nia.
      * assert (at_ (snd r) i = 0) as -> by lia. lia.
    + intros L HL. specialize (V5 L HL). unfold load in *.
      now rewrite (exchanged_machines s1 s2 m l1 l2 (i, Some j) (i, None) (weight L)).
  - exact (exchanged_machines s1 s2 m l1 l2 (i, Some j) (i, None) (icost P)).
  - rewrite R. change (busy (i, Some j)) with 1. change (busy (i, None)) with 0. lia.
Qed.

Lemma thrifty P : sane P = true -> forall n s, ivalid P s -> sum busy (all_blocks s) <= Z.of_nat n ->
  exists s', ivalid P s' /\ icost_of P s' = icost_of P s
    /\ forall i j, (i < iblock_types P)%nat -> (j < length (ijobs P))%nat ->
       served i j s' <= need i (ijob_at P j).
Proof.
  intros Hs. induction n as [|n IH]; intros s V B;
    (destruct (forallb (fun i => forallb (fun j => served i j s <=? need i (ijob_at P j))
       (seq 0 (length (ijobs P)))) (seq 0 (iblock_types P))) eqn:E;
     [exists s; split; [assumption|split; [reflexivity|]]; intros i j Hi Hj;
      rewrite forallb_forall in E; specialize (E i ltac:(apply in_seq; lia));
      rewrite forallb_forall in E; apply Z.leb_le, E, in_seq; lia|]);
    (assert (exists i j, (j < length (ijobs P))%nat /\ need i (ijob_at P j) < served i j s)
      as (i & j & Hj & L);
     [apply not_true_iff_false in E; rewrite forallb_forall in E;
      destruct (existsb (fun i => existsb (fun j => need i (ijob_at P j) <? served i j s)
        (seq 0 (length (ijobs P)))) (seq 0 (iblock_types P))) eqn:X;
      [apply existsb_exists in X as (i & _ & X); apply existsb_exists in X as (j & Hj & X);
       exists i, j; apply in_seq in Hj; split; [lia|now apply Z.ltb_lt]
      |exfalso; apply E; intros i Hi; apply forallb_forall; intros j Hj;
       apply Z.leb_le; apply Z.nlt_ge; intros L; apply not_true_iff_false in X; apply X;
       apply existsb_exists; exists i; split; [assumption|]; apply existsb_exists;
       exists j; split; [assumption|now apply Z.ltb_lt]]|]);
    destruct (release P s i j Hs V Hj L) as (s' & V' & C' & B').
  - exfalso. assert (0 <= sum busy (all_blocks s')); [|lia]. apply sum_nonneg.
    intros [? [?|]] _; unfold busy; simpl; lia.
  - destruct (IH s' V' ltac:(lia)) as (s'' & V'' & C'' & K). exists s''. split; [assumption|].
    split; [congruence|assumption].
Qed.

(** Without idle blocks, unless all blocks are listed. *)
Definition is_listed (P : iproblem) (M : machine) : bool :=
  existsb (fun c => match c with
                    | IListed m a => Nat.eqb (type M) m && same_counts a (blocks M)
                    | IBounded _ _ _ _ => false
                    end) (ishapes P).
Definition in_use (b : block) : bool := match snd b with Some _ => true | None => false end.
Definition stripped (P : iproblem) (M : machine) : machine :=
  if is_listed P M then M else {| type := type M; blocks := filter in_use (blocks M) |}.

Lemma stripped_type P M : type (stripped P M) = type M.
Proof. unfold stripped. now destruct (is_listed P M). Qed.

Lemma stripped_sum P M (f : block -> Z) : (forall i, f (i, None) = 0) ->
  sum f (blocks (stripped P M)) = sum f (blocks M).
Proof.
  intros H. unfold stripped. destruct (is_listed P M); [reflexivity|]. cbn [blocks].
  rewrite sum_filter. apply sum_ext. intros [i [j|]] _; cbn; [reflexivity|now rewrite H].
Qed.

Lemma stripped_in P M b : In b (blocks (stripped P M)) -> In b (blocks M).
Proof.
  unfold stripped. destruct (is_listed P M); [auto|]. cbn [blocks]. intros H.
  now apply filter_In in H.
Qed.

Theorem tidied P s : sane P = true -> ivalid P s ->
  exists s', ivalid P s' /\ tidy P s' /\ icost_of P s' = icost_of P s.
Proof.
  intros Hs V0. destruct (thrifty P Hs (Z.to_nat (sum busy (all_blocks s))) s V0 ltac:(lia))
    as (t & V & C & K). rewrite <- C. clear s V0 C.
  assert (In_all : forall b, In b (all_blocks (map (stripped P) t)) -> In b (all_blocks t)).
  { intros b Hb. apply in_flat_map in Hb as (M & HM & Hb). apply in_map_iff in HM as (M' & <- & HM).
    apply in_flat_map. exists M'. split; [assumption|]. eapply stripped_in; eassumption. }
  assert (Cut : forall M, In M t -> exists c, In c (ishapes P) /\ icut c (stripped P M) /\ match c with
    IListed _ _ => True | IBounded _ _ _ _ => forall i, count i (blocks (stripped P M)) <= use P i end).
  { intros M HM. unfold stripped. destruct (is_listed P M) eqn:L.
    - apply existsb_exists in L as (c & Hc & L). exists c. destruct c as [m a|]; [|discriminate].
      apply andb_true_iff in L as [L1 L2]. apply Nat.eqb_eq in L1. rewrite same_counts_iff in L2.
      split; [assumption|]. split; [split; assumption|exact I].
    - destruct (ivalid_cut P t V M HM) as (c & Hc & Cc). exists c. split; [assumption|].
      destruct c as [m a|m sizes cap n].
      { exfalso. apply not_true_iff_false in L. apply L. apply existsb_exists.
        exists (IListed m a). destruct Cc as [Cm Ca]. split; [assumption|].
        rewrite Cm, Nat.eqb_refl. now apply same_counts_iff. }
      cbn [icut blocks type] in *. destruct Cc as (C1 & C2 & C3 & C4).
      split; [split; [assumption|split; [|split]]|].
      + intros b Hb. apply filter_In in Hb as [Hb _]. now apply C2.
      + etransitivity; [|exact C3]. rewrite sum_filter. apply sum_le. intros b Hb.
        specialize (C2 b Hb). destruct (in_use b); lia.
      + intros l Hl. etransitivity; [|exact (C4 l Hl)]. rewrite <- !sum_length, sum_filter.
        apply sum_le. intros b _. destruct (in_use b); lia.
      + intros i. destruct (Nat.lt_ge_cases i (iblock_types P)) as [Hi|Hi].
        2:{ transitivity 0.
            - unfold count. rewrite sum_filter. transitivity (sum (fun _ => 0) (blocks M));
              [|rewrite sum_zero; lia]. apply sum_le. intros b Hb.
              assert (fst b < iblock_types P)%nat.
              { apply (ivalid_blocks P t V). apply in_flat_map. eauto. }
              destruct (Nat.eqb_spec (fst b) i); [lia|]. destruct (in_use b); cbn [iverson]; lia.
            - apply sum_nonneg. intros x _. apply need_nonneg. }
        unfold use. transitivity (sum (fun j => served i j t) (seq 0 (length (ijobs P)))).
        2:{ transitivity (sum (fun j => need i (ijob_at P j)) (seq 0 (length (ijobs P)))).
            - apply sum_le. intros j Hj. apply in_seq in Hj. apply K; [assumption|lia].
            - apply Z.eq_le_incl, (sum_nth no_ijob (need i)). }
        unfold served. rewrite <- (sum_swap (fun b j => iverson (Nat.eqb (fst b) i && serves j b))).
        unfold count. rewrite sum_filter. unfold all_blocks. rewrite sum_flat_map.
        etransitivity; [|apply (sum_one (fun M => sum (fun b => sum (fun j =>
          iverson (Nat.eqb (fst b) i && serves j b)) (seq 0 (length (ijobs P)))) (blocks M)) t M);
          [|assumption]].
        * apply sum_le. intros [i' [j|]] Hb; cbn [in_use fst snd serves].
          -- assert (j < length (ijobs P))%nat.
             { apply (ivalid_jobs P t V (i', Some j)); [apply in_flat_map; eauto|reflexivity]. }
             destruct (Nat.eqb i' i); cbn [andb iverson]; [|rewrite sum_zero; lia].
             rewrite (sum_ext _ (fun j' => if Nat.eqb j j' then 1 else 0)) by reflexivity.
             rewrite (sum_delta _ j (fun _ => 1)). destruct (Nat.ltb_spec j (length (ijobs P))); lia.
          -- apply sum_nonneg. intros j _. rewrite andb_false_r. simpl. lia.
        * intros M' _. apply sum_nonneg. intros b _. apply sum_nonneg. intros j _.
          destruct (_ && _); simpl; lia. }
  exists (map (stripped P) t). split; [constructor|split].
  - intros M HM. apply in_map_iff in HM as (M' & <- & HM).
    destruct (Cut M' HM) as (c & Hc & Cc & _). eauto.
  - intros b Hb. apply (ivalid_blocks P t V). auto.
  - intros b j Hb. apply (ivalid_jobs P t V). auto.
  - intros j r Hj Hr. etransitivity; [exact (ivalid_covers P t V j r Hj Hr)|]. apply Z.eq_le_incl.
    unfold icovered, all_blocks. rewrite !sum_flat_map, sum_map. apply sum_ext. intros M _.
    symmetry. apply stripped_sum. reflexivity.
  - intros L HL. unfold load. rewrite sum_map. rewrite (sum_ext _ (fun M => weight L (type M)));
      [exact (ivalid_limits P t V L HL)|]. intros M _. now rewrite stripped_type.
  - intros M HM. apply in_map_iff in HM as (M' & <- & HM). now apply Cut.
  - unfold icost_of. rewrite sum_map. apply sum_ext. intros M _. now rewrite stripped_type.
Qed.
