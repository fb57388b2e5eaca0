(** The cheapest blocks that cover a demand: what a job pays at given prices. *)
From CMS Require Export Sums.

(** Price and cover of a block. How many of each are taken is written beside it. *)
Notation item := (Z * Z)%type.
Notation choice := (list (Z * Z * Z)).
Definition chosen (items : list item) (c : choice) : Prop :=
  map fst c = items /\ Forall (fun x => 0 <= snd x) c.
Definition price (c : choice) : Z := sum (fun x => fst (fst x) * snd x) c.
Definition cover (c : choice) : Z := sum (fun x => snd (fst x) * snd x) c.

(** * A search

    No block is cheaper per unit than P for F. A state has the other blocks that may still be taken,
    what is left to cover, and what is spent; the states to come are on a stack. *)
Notation state := (list (Z * Z) * Z * Z)%type.

(** None: the fuel is used up. *)
Fixpoint search (fuel : nat) (P F : Z) (stack : list state) (best : Z) : option Z :=
  match stack with
  | [] => Some best
  | (others, D, spent) :: stack =>
      match fuel with
      | O => None
      | S fuel =>
          if D <=? 0 then search fuel P F stack (Z.min best spent)
          else if best <=? spent + cdiv (P * D) F then search fuel P F stack best
          else match others with
               | [] => search fuel P F stack (Z.min best (spent + P * cdiv D F))
               | (p, f) :: rest =>
                   search fuel P F ((rest, D, spent) :: (others, D - f, spent + p) :: stack) best
               end
      end
  end.

Definition no_cheaper (P F : Z) (x : item) : bool := (0 <=? fst x) && (P * snd x <=? fst x * F).

Section Search.
Variables P F : Z.
Hypothesis F_pos : 0 < F.
Hypothesis P_nonneg : 0 <= P.

Definition fair (st : state) : Prop :=
  let '(others, _, _) := st in forallb (no_cheaper P F) others = true.
(** A way to end from a state, and what it costs. *)
Definition ends (st : state) (c : choice) : Prop :=
  let '(others, D, _) := st in chosen ((P, F) :: others) c /\ D <= cover c.
Definition total (st : state) (c : choice) : Z := snd st + price c.

Lemma price_per_unit others c : forallb (no_cheaper P F) others = true ->
  chosen ((P, F) :: others) c -> P * cover c <= price c * F /\ 0 <= price c.
Proof.
  intros Ho [E N].
  assert (forallb (no_cheaper P F) (map fst c) = true) as H.
  { rewrite E. cbn [forallb]. rewrite Ho. unfold no_cheaper. cbn [fst snd].
    rewrite andb_true_r. apply andb_true_iff. rewrite !Z.leb_le. lia. }
  clear E Ho. induction N as [|[[p f] z] c Z N IH]; [cbn; lia|].
  cbn [map forallb] in H. apply andb_true_iff in H as [H1 H2]. specialize (IH H2).
  unfold no_cheaper in H1. cbn [fst snd] in *. rewrite andb_true_iff, !Z.leb_le in H1.
  unfold cover, price in *. rewrite !sum_cons. cbn [fst snd] in *. nia.
Qed.

Lemma with_none (others : list item) : chosen others (map (fun x => (x, 0)) others)
  /\ price (map (fun x => (x, 0)) others) = 0 /\ cover (map (fun x => (x, 0)) others) = 0.
Proof.
  unfold price, cover. rewrite !sum_map. cbn [fst snd]. repeat split.
  - now rewrite map_map, map_id.
  - apply Forall_forall. intros x H. apply in_map_iff in H as (y & <- & _). cbn. lia.
  - rewrite (sum_ext _ (fun _ => 0)), sum_zero; lia.
  - rewrite (sum_ext _ (fun _ => 0)), sum_zero; lia.
Qed.

Theorem search_sound fuel : forall stack best b,
  search fuel P F stack best = Some b -> Forall fair stack ->
  b <= best /\ forall st c, In st stack -> ends st c -> b <= total st c.
Proof.
  induction fuel as [|fuel IH]; intros [|[[others D] spent] stack] best b H G; cbn [search] in H;
    try discriminate; try (injection H as <-; split; [lia|intros ? ? []]).
  inversion G as [|? ? G1 G2]; subst. cbn [fair] in G1.
  destruct (Z.leb_spec D 0) as [D0|D0].
  { destruct (IH _ _ _ H G2) as [A B]. split; [lia|]. intros st c [<-|Hs] C; [destruct C as [C1 C2]|now apply B].
    pose proof (price_per_unit others c G1 C1). unfold total. cbn [snd]. lia. }
  destruct (Z.leb_spec best (spent + cdiv (P * D) F)) as [L|L].
  { destruct (IH _ _ _ H G2) as [A B]. split; [lia|]. intros st c [<-|Hs] C; [destruct C as [C1 C2]|now apply B].
    pose proof (price_per_unit others c G1 C1). unfold total. cbn [snd].
    assert (cdiv (P * D) F <= price c) by (apply cdiv_le; nia). lia. }
  destruct others as [|[p f] rest].
  { destruct (IH _ _ _ H G2) as [A B]. split; [lia|].
    intros st c [<-|Hs] C; [destruct C as [[E N] C2]|now apply B]. unfold total. cbn [snd].
    destruct c as [|[x z] [|]]; try discriminate. injection E as ->. inversion N; subst.
    unfold cover, price in *. cbn [sum fold_right fst snd] in *.
    assert (cdiv D F <= z) by (apply cdiv_le; lia). nia. }
  cbn [forallb] in G1. pose proof G1 as G1'. apply andb_true_iff in G1' as [_ Gr].
  destruct (IH _ _ _ H ltac:(repeat constructor; assumption)) as [A B].
  split; [exact A|]. intros st c [<-|Hs] C; [destruct C as [[E N] C2]|apply B; [now right; right|assumption]].
  destruct c as [|[x0 z0] [|[x1 z] c]]; try discriminate. injection E as -> -> E.
  pose proof (Forall_inv N) as N0. pose proof (Forall_inv (Forall_inv_tail N)) as N1.
  pose proof (Forall_inv_tail (Forall_inv_tail N)) as N2. cbn [snd] in N1.
  unfold total in *. unfold cover, price in C2 |- *. rewrite !sum_cons in *. cbn [fst snd] in *.
  destruct (Z.eq_dec z 0) as [->|Nz].
  - specialize (B (rest, D, spent) ((P, F, z0) :: c) (or_introl eq_refl)).
    unfold ends, cover, price in B. rewrite !sum_cons in B. cbn [snd] in B.
    cbn [fst snd] in *. assert (chosen ((P, F) :: rest) ((P, F, z0) :: c)) as K.
    { split; [cbn [map fst]; now rewrite E|now constructor]. }
    etransitivity; [apply B; split; [exact K|lia]|]. lia.
  - specialize (B ((p, f) :: rest, D - f, spent + p) ((P, F, z0) :: ((p, f), z - 1) :: c)
      (or_intror (or_introl eq_refl))).
    unfold ends, cover, price in B. rewrite !sum_cons in B. cbn [fst snd] in *.
    assert (chosen ((P, F) :: (p, f) :: rest) ((P, F, z0) :: ((p, f), z - 1) :: c)) as K.
    { split; [cbn [map fst]; now rewrite E|]. repeat constructor; cbn [snd] in *; auto; lia. }
    etransitivity; [apply B; split; [exact K|lia]|]. lia.
Qed.

(** What the search answers can be had. *)
Theorem search_exact fuel : forall stack best b, search fuel P F stack best = Some b ->
  b = best \/ exists st c, In st stack /\ ends st c /\ b = total st c.
Proof.
  induction fuel as [|fuel IH]; intros [|[[others D] spent] stack] best b H; cbn [search] in H;
    try discriminate; try (injection H as <-; now left).
  assert (forall w, (exists c, ends (others, D, spent) c /\ w = spent + price c) ->
    search fuel P F stack (Z.min best w) = Some b -> b = best \/ exists st c,
      In st ((others, D, spent) :: stack) /\ ends st c /\ b = total st c) as K.
  { intros w (c & E & W) H'. destruct (IH _ _ _ H') as [->|(st & c' & I & R)].
    - destruct (Z.min_spec best w) as [[_ ->]|[_ ->]]; [now left|]. right.
      exists (others, D, spent), c. split; [now left|]. split; assumption.
    - right. exists st, c'. split; [now right|assumption]. }
  destruct (Z.leb_spec D 0).
  { apply (K spent); [|assumption]. destruct (with_none ((P, F) :: others)) as (C1 & C2 & C3).
    eexists. split; [split; [exact C1|lia]|lia]. }
  destruct (Z.leb_spec best (spent + cdiv (P * D) F)).
  { destruct (IH _ _ _ H) as [|(st & c & I & R)]; [now left|right; exists st, c; split; [now right|assumption]]. }
  destruct others as [|[p f] rest].
  { apply (K (spent + P * cdiv D F)); [|exact H]. exists [((P, F), cdiv D F)]. split.
    - split; [split; [reflexivity|constructor; [|constructor]]|].
      + cbn [snd]. pose proof (cdiv_ge D F F_pos). nia.
      + unfold cover. cbn. pose proof (cdiv_ge D F F_pos). lia.
    - unfold price. cbn. lia. }
  destruct (IH _ _ _ H) as [|(st & c & I & R)]; [now left|right].
  destruct I as [<-|[<-|I]].
  - destruct R as [[[E N] C] R]. destruct c as [|[x0 z0] c]; [discriminate|]. injection E as -> E.
    exists ((p, f) :: rest, D, spent), ((P, F, z0) :: ((p, f), 0) :: c). split; [now left|].
    pose proof (Forall_inv N) as N0. pose proof (Forall_inv_tail N) as N1. unfold ends, chosen, total, cover, price in *.
    rewrite !sum_cons in *. cbn [map fst snd] in *. rewrite ?E. repeat split; try lia.
    repeat constructor; cbn [snd] in *; auto; lia.
  - destruct R as [[[E N] C] R]. destruct c as [|[x0 z0] [|[x z] c]]; try discriminate.
    injection E as -> -> E.
    pose proof (Forall_inv N) as N0. pose proof (Forall_inv (Forall_inv_tail N)) as N1.
    pose proof (Forall_inv_tail (Forall_inv_tail N)) as N2.
    exists ((p, f) :: rest, D, spent), ((P, F, z0) :: ((p, f), z + 1) :: c). split; [now left|].
    unfold ends, chosen, total, cover, price in *. cbn [snd] in N1.
    rewrite !sum_cons in *. cbn [map fst snd] in *. rewrite ?E. repeat split; try lia.
    repeat constructor; cbn [snd] in *; auto; lia.
  - exists st, c. split; [now right|assumption].
Qed.
End Search.
