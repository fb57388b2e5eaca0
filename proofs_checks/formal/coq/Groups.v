(** Schedules in groups of equal machines, as files have them, and a program that checks them. *)
From CMS Require Export Certificate.
From Coq Require Import Mergesort Orders.

Record group := {
  group_type : nat;
  group_counts : list Z;                     (* blocks of each type on one machine *)
  group_machines : Z;                        (* how many such machines *)
  group_assignment : list (nat * nat * Z) }. (* block, job, how many of these on one machine *)

(** * The program *)
Definition used (g : group) (i : nat) : Z :=
  sum (fun x => if Nat.eqb (fst (fst x)) i then snd x else 0) (group_assignment g).

Definition allows (c : ishape) (m : nat) (a : list Z) : bool :=
  match c with
  | IListed m' a' => Nat.eqb m m' && same_shape a a'
  | IBounded m' sizes cap n => Nat.eqb m m' && in_set sizes cap n a
  end.

Definition group_holds (P : iproblem) (n : nat) (g : group) : bool :=
  (1 <=? group_machines g)
  && existsb (fun c => allows c (group_type g) (group_counts g)) (ishapes P)
  && Nat.leb (length (group_counts g)) (iblock_types P)
  && forallb (fun x => (1 <=? snd x) && Nat.ltb (fst (fst x)) (length (group_counts g))
                       && Nat.ltb (snd (fst x)) n) (group_assignment g)
  && forallb (fun x => used g (fst x) <=? snd x) (numbered (group_counts g)).

(** Block, job, and how many blocks of all machines of a group. *)
Definition entries (gs : list group) : list (nat * nat * Z) :=
  flat_map (fun g => map (fun x => (fst x, group_machines g * snd x)) (group_assignment g)) gs.

Module By_job <: TotalLeBool.
  Definition t := (nat * nat * Z)%type.
  Definition leb (x y : t) := Nat.leb (snd (fst x)) (snd (fst y)).
  Lemma leb_total x y : leb x y = true \/ leb y x = true.
  Proof. unfold leb. rewrite !Nat.leb_le. lia. Qed.
End By_job.
Module Sorted := Sort By_job.

(** The entries of job j at the head of a list, and the others. *)
Fixpoint take (j : nat) (es : list (nat * nat * Z)) : list (nat * nat * Z) * list (nat * nat * Z) :=
  match es with
  | [] => ([], [])
  | e :: rest => if Nat.eqb (snd (fst e)) j
                 then let (mine, others) := take j rest in (e :: mine, others)
                 else ([], es)
  end.
Definition gives (f : list Z) (e : nat * nat * Z) : Z := snd e * at_ f (fst (fst e)).
(** Whether the jobs from number j on are covered by entries in their order. *)
Fixpoint walk (j : nat) (jobs : list ijob) (es : list (nat * nat * Z)) : bool :=
  match jobs with
  | [] => true
  | x :: jobs => let (mine, others) := take j es in
                 forallb (fun r => fst r <=? sum (gives (snd r)) mine) (irows x)
                 && walk (S j) jobs others
  end.

(** What the schedule costs, if it is valid. *)
Definition check_schedule (P : iproblem) (gs : list group) : option Z :=
  let n := length (ijobs P) in
  if forallb (group_holds P n) gs
     && walk 0 (ijobs P) (Sorted.sort (entries gs))
     && forallb (fun L => sum (fun g => group_machines g * weight L (group_type g)) gs <=? igreatest L)
          (ilimits P)
  then Some (sum (fun g => group_machines g * icost P (group_type g)) gs)
  else None.

(** * The machines themselves *)
Definition machine_of (g : group) : machine :=
  {| type := group_type g;
     blocks :=
       flat_map (fun x => repeat (fst (fst x), Some (snd (fst x))) (Z.to_nat (snd x)))
         (group_assignment g)
       ++ flat_map (fun x => repeat (fst x, None) (Z.to_nat (snd x - used g (fst x))))
            (numbered (group_counts g)) |}.
Definition expand (gs : list group) : schedule :=
  flat_map (fun g => repeat (machine_of g) (Z.to_nat (group_machines g))) gs.

Lemma allows_iff c M a : (forall i, count i (blocks M) = at_ a i) ->
  allows c (type M) a = true <-> icut c M.
Proof.
  intros E. destruct c as [m a'|m sizes cap n]; cbn [allows]; rewrite andb_true_iff, Nat.eqb_eq.
  - rewrite same_shape_iff. cbn [icut]. split; intros [T H]; (split; [exact T|]); intros i;
      specialize (H i); specialize (E i); congruence.
  - rewrite (in_set_iff sizes cap n a M E). split; [intros [<- H]; exact H|].
    intros (<- & H). split; [reflexivity|]. split; [reflexivity|exact H].
Qed.

Section Group.
Variable P : iproblem.
Variable g : group.
Hypothesis H : group_holds P (length (ijobs P)) g = true.

Lemma facts : 1 <= group_machines g
  /\ (exists c, In c (ishapes P) /\ allows c (group_type g) (group_counts g) = true)
  /\ (length (group_counts g) <= iblock_types P)%nat
  /\ (forall x, In x (group_assignment g) -> 1 <= snd x
        /\ (fst (fst x) < length (group_counts g))%nat /\ (snd (fst x) < length (ijobs P))%nat)
  /\ (forall x, In x (numbered (group_counts g)) -> used g (fst x) <= snd x).
Proof.
  pose proof H as K. unfold group_holds in K. rewrite !andb_true_iff in K.
  destruct K as [[[[K1 K2] K3] K4] K5]. rewrite forallb_forall in K4, K5.
  split; [now apply Z.leb_le|split; [now apply existsb_exists|split; [now apply Nat.leb_le|split]]].
  - intros x Hx. specialize (K4 x Hx). rewrite !andb_true_iff, Z.leb_le, !Nat.ltb_lt in K4. tauto.
  - intros x Hx. now apply Z.leb_le, K5.
Qed.

(** A sum over a machine's blocks, the idle ones apart. *)
Lemma sum_machine (f : block -> Z) :
  sum f (blocks (machine_of g))
  = sum (fun x => snd x * f (fst (fst x), Some (snd (fst x)))) (group_assignment g)
    + sum (fun i => (at_ (group_counts g) i - used g i) * f (i, None))
        (seq 0 (length (group_counts g))).
Proof.
  destruct facts as (_ & _ & _ & F4 & F5). cbn [machine_of blocks].
  rewrite sum_app, !sum_flat_map. f_equal.
  - apply sum_ext. intros x Hx. rewrite sum_repeat, Z2Nat.id; [reflexivity|].
    specialize (F4 x Hx). lia.
  - unfold at_. rewrite <- (sum_numbered 0 (fun i n => (n - used g i) * f (i, None))). apply sum_ext.
    intros x Hx. rewrite sum_repeat, Z2Nat.id; [reflexivity|]. specialize (F5 x Hx). lia.
Qed.

Lemma machine_counts i : count i (blocks (machine_of g)) = at_ (group_counts g) i.
Proof.
  unfold count. rewrite sum_machine. cbn [fst].
  rewrite (sum_ext (fun x : nat * nat * Z => snd x * iverson (Nat.eqb (fst (fst x)) i))
             (fun x => if Nat.eqb (fst (fst x)) i then snd x else 0))
    by (intros x _; destruct (Nat.eqb _ _); cbn [iverson]; lia).
  fold (used g i).
  rewrite (sum_ext (fun i0 => (at_ (group_counts g) i0 - used g i0) * iverson (Nat.eqb i0 i))
             (fun i0 => if Nat.eqb i i0 then at_ (group_counts g) i0 - used g i0 else 0)).
  2:{ intros i0 _. rewrite Nat.eqb_sym. destruct (Nat.eqb _ _); cbn [iverson]; lia. }
  rewrite (sum_delta _ i (fun i0 => at_ (group_counts g) i0 - used g i0)).
  destruct (Nat.ltb_spec i (length (group_counts g))) as [|G]; [lia|].
  rewrite at_beyond by lia. unfold used. rewrite (sum_ext _ (fun _ => 0)), sum_zero; [lia|].
  intros x Hx. destruct facts as (_ & _ & _ & F4 & _). destruct (F4 x Hx) as (_ & L & _).
  destruct (Nat.eqb_spec (fst (fst x)) i); [lia|reflexivity].
Qed.

Lemma in_machine b : In b (blocks (machine_of g)) ->
  (fst b < length (group_counts g))%nat
  /\ match snd b with Some j => (j < length (ijobs P))%nat | None => True end.
Proof.
  cbn [machine_of blocks]. rewrite in_app_iff, !in_flat_map.
  intros [(x & Hx & Hb) | ([i n] & Hi & Hb)]; apply repeat_spec in Hb; subst b; cbn [fst snd].
  - now apply facts.
  - apply (in_numbered 0) in Hi. split; [apply Hi|exact I].
Qed.

Lemma machine_cut : exists c, In c (ishapes P) /\ icut c (machine_of g).
Proof.
  destruct facts as (_ & (c & Hc & G) & _). exists c. split; [assumption|].
  now apply (allows_iff c (machine_of g) _ machine_counts).
Qed.
End Group.

(** * Demands *)
Lemma take_all j es : es = fst (take j es) ++ snd (take j es)
  /\ forall e, In e (fst (take j es)) -> snd (fst e) = j.
Proof.
  induction es as [|e es [IH1 IH2]]; [split; [reflexivity|intros ? []]|]. cbn [take].
  destruct (Nat.eqb_spec (snd (fst e)) j) as [E|].
  - destruct (take j es) as [mine others]. cbn [fst snd app] in *. split; [now rewrite <- IH1|].
    intros x [<-|Hx]; auto.
  - split; [reflexivity|intros ? []].
Qed.

Lemma walk_sound jobs : forall j es, walk j jobs es = true ->
  (forall e, In e es -> 0 <= snd e) ->
  (forall t r i, In r (irows (nth t jobs no_ijob)) -> 0 <= at_ (snd r) i) ->
  forall t r, (t < length jobs)%nat -> In r (irows (nth t jobs no_ijob)) -> fst r
    <= sum (fun e => if Nat.eqb (snd (fst e)) (j + t) then gives (snd r) e else 0) es.
Proof.
  induction jobs as [|x jobs IH]; intros j es Hw He Hs t r Ht Hr; [simpl in Ht; lia|].
  cbn [walk] in Hw. destruct (take_all j es) as [E T]. destruct (take j es) as [mine others].
  cbn [fst snd] in *. apply andb_true_iff in Hw as [D Hw]. rewrite forallb_forall in D.
  assert (Ho : forall e, In e others -> 0 <= snd e).
  { intros e H. apply He. rewrite E, in_app_iff. auto. }
  rewrite E, sum_app. destruct t as [|t]; cbn [nth] in *.
  - rewrite Nat.add_0_r. specialize (D r Hr). apply Z.leb_le in D.
    rewrite (sum_ext (fun e => if Nat.eqb (snd (fst e)) j then gives (snd r) e else 0) (gives (snd r)) mine).
    2:{ intros e H. specialize (T e H). rewrite T, Nat.eqb_refl. reflexivity. }
    assert (0 <= sum (fun e => if Nat.eqb (snd (fst e)) j then gives (snd r) e else 0) others); [|lia].
    apply sum_nonneg. intros e H. specialize (Ho e H). specialize (Hs 0%nat r (fst (fst e)) Hr).
    unfold gives. destruct (Nat.eqb _ _); nia.
  - specialize (IH (S j) others Hw Ho (fun t => Hs (S t)) t r ltac:(simpl in Ht; lia) Hr).
    replace (j + S t)%nat with (S j + t)%nat by lia.
    rewrite (sum_ext _ (fun _ => 0) mine), sum_zero; [lia|].
    intros e H. specialize (T e H). destruct (Nat.eqb_spec (snd (fst e)) (S j + t)); [lia|reflexivity].
Qed.

Lemma sum_expand (f : machine -> Z) P gs :
  forallb (group_holds P (length (ijobs P))) gs = true ->
  sum f (expand gs) = sum (fun g => group_machines g * f (machine_of g)) gs.
Proof.
  intros H. unfold expand. rewrite sum_flat_map. apply sum_ext. intros g Hg.
  rewrite sum_repeat, Z2Nat.id; [reflexivity|]. rewrite forallb_forall in H.
  destruct (facts P g (H g Hg)). lia.
Qed.

Theorem schedule_sound P gs c : sane P = true -> check_schedule P gs = Some c ->
  ivalid P (expand gs) /\ icost_of P (expand gs) = c.
Proof.
  unfold check_schedule. intros Hs E. destruct (_ && _ && _) eqn:G in E; [|discriminate].
  injection E as <-. rewrite !andb_true_iff in G. destruct G as [[Hg Hd] Hl].
  pose proof Hg as HG. rewrite forallb_forall in HG.
  assert (IN : forall M, In M (expand gs) -> exists g, In g gs /\ M = machine_of g).
  { intros M HM. apply in_flat_map in HM as (g & Hin & HM). apply repeat_spec in HM. eauto. }
  assert (INB : forall b, In b (all_blocks (expand gs)) ->
            exists g, In g gs /\ In b (blocks (machine_of g))).
  { intros b Hb. apply in_flat_map in Hb as (M & HM & Hb).
    destruct (IN M HM) as (g & Hin & ->). eauto. }
  split; [constructor|].
  - intros M HM. destruct (IN M HM) as (g & Hin & ->). apply machine_cut. auto.
  - intros b Hb. destruct (INB b Hb) as (g & Hin & Hbg).
    destruct (in_machine P g (HG g Hin) b Hbg) as [L _].
    destruct (facts P g (HG g Hin)) as (_ & _ & F & _). lia.
  - intros b j Hb Hj. destruct (INB b Hb) as (g & Hin & Hbg).
    destruct (in_machine P g (HG g Hin) b Hbg) as [_ L]. now rewrite Hj in L.
  - intros j r Hj Hr.
    assert (EN : forall e, In e (entries gs) -> 0 <= snd e).
    { intros e He. apply in_flat_map in He as (g & Hin & He).
      apply in_map_iff in He as (y & <- & Hy).
      destruct (facts P g (HG g Hin)) as (F1 & _ & _ & F4 & _). specialize (F4 y Hy).
      cbn [snd]. nia. }
    pose proof (Sorted.Permuted_sort (entries gs)) as Q.
    pose proof (walk_sound (ijobs P) 0 _ Hd
      (fun e He => EN e (Permutation_in e (Permutation_sym Q) He))
      (fun t r i => row_nonneg P t r i Hs) j r Hj Hr) as K.
    rewrite <- (sum_perm _ _ _ Q) in K.
    etransitivity; [exact K|]. apply Z.eq_le_incl. cbn [Nat.add].
    unfold icovered, all_blocks, entries. rewrite !sum_flat_map, (sum_expand _ P gs Hg).
    apply sum_ext. intros g Hin. rewrite sum_map. cbn [fst snd].
    rewrite (sum_machine P g (HG g Hin)). cbn [serves fst snd].
    rewrite (sum_ext (fun i => _ * 0) (fun _ => 0)), sum_zero by (intros; lia).
    rewrite Z.add_0_r, <- sum_scale. apply sum_ext. intros y _. unfold gives. cbn [fst snd].
    destruct (Nat.eqb _ _); lia.
  - intros L HL. rewrite forallb_forall in Hl. specialize (Hl L HL). apply Z.leb_le in Hl.
    unfold load. rewrite (sum_expand _ P gs Hg). exact Hl.
  - unfold icost_of. rewrite (sum_expand _ P gs Hg). reflexivity.
Qed.
