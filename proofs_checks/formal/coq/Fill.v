(** The dearest blocks within a capacity: whether a machine of a set may be worth more than U. *)
From CMS Require Export Sums.

(** Worth and size of a block of some type, and how many of it there may be. *)
Record piece := { worth : Z; size : Z; most : Z }.
Notation content := (list (piece * Z)).
Definition holds_content (pieces : list piece) (c : content) : Prop :=
  map fst c = pieces /\ Forall (fun x => 0 <= snd x <= most (fst x)) c.
Definition value (c : content) : Z := sum (fun x => worth (fst x) * snd x) c.
Definition volume (c : content) : Z := sum (fun x => size (fst x) * snd x) c.
Definition number (c : content) : Z := sum snd c.
(** A limit that may be there. *)
Definition within (limit : option Z) (n : Z) : Prop := forall l, limit = Some l -> n <= l.
Definition is_within (limit : option Z) (n : Z) : bool :=
  match limit with Some l => n <=? l | None => true end.
Definition less (limit : option Z) (n : Z) : option Z := option_map (fun l => l - n) limit.

Lemma is_within_iff limit n : is_within limit n = true <-> within limit n.
Proof.
  unfold within. destruct limit as [l|]; simpl.
  - rewrite Z.leb_le. split; [intros H l' E; injection E as <-; exact H|intros H; now apply H].
  - split; [intros _ l' E; discriminate|reflexivity].
Qed.

(** * A bound, by prices

    Pay p / q for a unit of size and u / q for a block: what a block is worth beyond that is gained
    as often as there may be such blocks, and as would fit. *)
Record rates := { per_size : Z; per_block : Z; divided_by : Z }.
Definition gain (r : rates) (cap : Z) (x : piece) : Z :=
  Z.min (most x) (cap / size x)
  * Z.max 0 (divided_by r * worth x - per_size r * size x - per_block r).
Definition small (r : rates) (pieces : list piece) (cap : Z) (n : option Z) (U : Z) : bool :=
  (0 <=? per_size r) && (0 <? divided_by r)
  && match n with Some n => 0 <=? per_block r | None => per_block r =? 0 end
  && (per_size r * cap + per_block r * match n with Some n => n | None => 0 end
      + sum (gain r cap) pieces <? divided_by r * (U + 1)).

(** Rates worth trying: of the first block that does not fit any more, of the dearest, none. *)
Fixpoint critical (pieces : list piece) (cap : Z) : rates :=
  match pieces with
  | [] => {| per_size := 0; per_block := 0; divided_by := 1 |}
  | x :: rest =>
      if most x * size x <=? cap then critical rest (cap - most x * size x)
      else {| per_size := worth x; per_block := 0; divided_by := size x |}
  end.
Definition dearest (pieces : list piece) : rates :=
  {| per_size := 0; per_block := fold_right (fun x => Z.max (worth x)) 0 pieces; divided_by := 1 |}.
Definition none : rates := {| per_size := 0; per_block := 0; divided_by := 1 |}.
Definition bounded (pieces : list piece) (cap : Z) (n : option Z) (U : Z) : bool :=
  small (critical pieces cap) pieces cap n U || small none pieces cap n U
  || match n with Some _ => small (dearest pieces) pieces cap n U | None => false end.

(** * A search *)
Notation room := (list piece * Z * option Z * Z)%type.
Definition one_less (x : piece) : piece :=
  {| worth := worth x; size := size x; most := most x - 1 |}.

(** Some b: whether all contents of all these are worth at most their U; None: no fuel is left. *)
Fixpoint fill (fuel : nat) (stack : list room) : option bool :=
  match stack with
  | [] => Some true
  | (pieces, cap, n, U) :: stack =>
      match fuel with
      | O => None
      | S fuel =>
          if bounded pieces cap n U then fill fuel stack
          else match pieces with
               | [] => Some false
               | x :: rest =>
                   if (1 <=? most x) && (size x <=? cap) && is_within n 1
                   then fill fuel ((one_less x :: rest, cap - size x, less n 1, U - worth x)
                                   :: (rest, cap, n, U) :: stack)
                   else fill fuel ((rest, cap, n, U) :: stack)
               end
      end
  end.

Definition sized (st : room) : Prop :=
  let '(pieces, _, _, _) := st in Forall (fun x => 0 < size x) pieces.
Definition fits (st : room) (c : content) : Prop :=
  let '(pieces, cap, n, _) := st in holds_content pieces c /\ volume c <= cap /\ within n (number c).

Lemma small_sound r pieces cap n U c : Forall (fun x => 0 < size x) pieces ->
  small r pieces cap n U = true -> fits (pieces, cap, n, U) c -> value c <= U.
Proof.
  intros Z0 H ((E & N) & V & B). unfold small in H. rewrite !andb_true_iff in H.
  destruct H as [[[H1 H2] H3] H4]. apply Z.leb_le in H1. apply Z.ltb_lt in H2, H4.
  assert (K : divided_by r * value c
    <= per_size r * volume c + per_block r * number c + sum (gain r cap) pieces).
  { rewrite <- E in Z0 |- *. unfold value, volume, number. rewrite <- !sum_scale, sum_map, <- !sum_plus.
    apply sum_le. intros [x z] Hx. rewrite Forall_forall in N, Z0. pose proof (N _ Hx) as Nx.
    pose proof (Z0 _ (in_map fst _ _ Hx)) as Sx. cbn [fst snd] in *. unfold gain.
    assert (z <= cap / size x).
    { apply Z.div_le_lower_bound; [assumption|]. etransitivity; [|exact V]. unfold volume.
      apply (sum_one (fun x => size (fst x) * snd x) c (x, z)); [|assumption].
      intros y Hy. specialize (N y Hy). specialize (Z0 _ (in_map fst _ _ Hy)). nia. }
    nia. }
  destruct n as [n|].
  - apply Z.leb_le in H3. specialize (B n eq_refl). nia.
  - apply Z.eqb_eq in H3. rewrite H3 in *. nia.
Qed.

Lemma bounded_sound pieces cap n U c : Forall (fun x => 0 < size x) pieces ->
  bounded pieces cap n U = true -> fits (pieces, cap, n, U) c -> value c <= U.
Proof.
  intros Z0 H F. unfold bounded in H. rewrite !orb_true_iff in H.
  destruct H as [[H|H]|H]; [..|destruct n; [|discriminate]]; eapply small_sound; eauto.
Qed.

Theorem fill_sound fuel : forall stack, fill fuel stack = Some true -> Forall sized stack ->
  forall st c, In st stack -> fits st c -> value c <= snd st.
Proof.
  induction fuel as [|fuel IH]; intros [|[[[pieces cap] n] U] stack] H Z0 st c I F;
    cbn [fill] in H; try discriminate; try (now destruct I).
  pose proof (Forall_inv Z0) as Z1. pose proof (Forall_inv_tail Z0) as Z2. cbn [sized] in Z1.
  destruct (bounded pieces cap n U) eqn:B.
  { destruct I as [<-|I]; [|now apply (IH stack H Z2)]. eapply bounded_sound; eauto. }
  destruct pieces as [|x rest]; [discriminate|].
  pose proof (Forall_inv Z1) as Zx. pose proof (Forall_inv_tail Z1) as Zr. cbn in Zx.
  assert (Drop : forall c, fits (x :: rest, cap, n, U) ((x, 0) :: c) -> fits (rest, cap, n, U) c).
  { intros c' ((E & N) & V & W). unfold fits, holds_content, volume, number in *.
    rewrite !sum_cons in *. cbn [map fst snd] in *. injection E as E.
    split; [split; [exact E|exact (Forall_inv_tail N)]|split; [lia|]].
    intros l Hl. specialize (W l Hl). lia. }
  destruct ((1 <=? most x) && (size x <=? cap) && is_within n 1) eqn:T.
  - assert (sized (one_less x :: rest, cap - size x, less n 1, U - worth x)) as Zn
      by (constructor; assumption).
    pose proof (IH _ H (Forall_cons _ Zn (Forall_cons (rest, cap, n, U) Zr Z2))) as K.
    destruct I as [<-|I]; [|apply (K st c); [now right; right|assumption]].
    destruct c as [|[y z] c]; [destruct F as [[E _] _]; discriminate|].
    assert (y = x) as -> by (destruct F as [[E _] _]; now injection E).
    destruct (Z.eq_dec z 0) as [->|Nz].
    + specialize (K _ c (or_intror (or_introl eq_refl)) (Drop c F)).
      unfold value in *. rewrite sum_cons. cbn [fst snd] in *. lia.
    + specialize (K _ ((one_less x, z - 1) :: c) (or_introl eq_refl)). destruct F as ((E & N) & V & W).
      pose proof (Forall_inv N) as Nx. cbn [fst snd] in Nx.
      unfold fits, holds_content, volume, number, value in *. rewrite !sum_cons in *.
      cbn [map fst snd one_less size worth most] in *. injection E as E.
      enough (worth x * (z - 1) + sum (fun x => worth (fst x) * snd x) c <= U - worth x) by lia.
      apply K. repeat split; [now rewrite E|constructor; [cbn; lia|exact (Forall_inv_tail N)]|lia|].
      intros l Hl. destruct n as [n|]; [|discriminate]. injection Hl as <-.
      specialize (W n eq_refl). lia.
  - pose proof (IH _ H (Forall_cons (rest, cap, n, U) Zr Z2)) as K.
    destruct I as [<-|I]; [|apply (K st c); [now right|assumption]].
    destruct c as [|[y z] c]; [destruct F as [[E _] _]; discriminate|].
    assert (y = x) as -> by (destruct F as [[E _] _]; now injection E).
    assert (z = 0) as ->.
    { destruct F as ((E & N) & V & W). pose proof (Forall_inv N) as Nx. cbn [fst snd] in Nx.
      rewrite !andb_false_iff, !Z.leb_gt in T. destruct T as [[T|T]|T]; [lia| |].
      - unfold volume in V. rewrite sum_cons in V. cbn [fst snd] in V.
        assert (0 <= sum (fun x => size (fst x) * snd x) c); [|nia].
        injection E as E. apply sum_nonneg. intros a Ha. rewrite Forall_forall in N, Zr.
        specialize (N a (or_intror Ha)). specialize (Zr (fst a)). rewrite <- E in Zr.
        specialize (Zr (in_map fst _ _ Ha)). nia.
      - assert (~ within n 1) as T' by (rewrite <- is_within_iff; congruence).
        unfold number in W. rewrite sum_cons in W. cbn [snd] in W.
        assert (0 <= sum snd c).
        { apply sum_nonneg. intros a Ha. rewrite Forall_forall in N.
          specialize (N a (or_intror Ha)). lia. }
        assert (~ 1 <= z); [|lia]. intros Hz. apply T'. intros l Hl. specialize (W l Hl). lia. }
    specialize (K _ c (or_introl eq_refl) (Drop c F)).
    unfold value in *. rewrite sum_cons. cbn [fst snd] in *. lia.
Qed.

(** If the search says no, some content is worth more. *)
Theorem fill_exact fuel : forall stack, fill fuel stack = Some false -> Forall sized stack ->
  Forall (fun st => let '(pieces, cap, n, _) := st in
            0 <= cap /\ within n 0 /\ Forall (fun x => 0 <= most x) pieces) stack ->
  exists st c, In st stack /\ fits st c /\ snd st < value c.
Proof.
  induction fuel as [|fuel IH]; intros [|[[[pieces cap] n] U] stack] H Z0 R;
    cbn [fill] in H; try discriminate.
  pose proof (Forall_inv Z0) as Z1. pose proof (Forall_inv_tail Z0) as Z2. cbn [sized] in Z1.
  pose proof (Forall_inv R) as (R1 & R2 & R3). pose proof (Forall_inv_tail R) as R4.
  destruct (bounded pieces cap n U) eqn:B.
  { destruct (IH _ H Z2 R4) as (st & c & I & K). exists st, c. split; [now right|assumption]. }
  destruct pieces as [|x rest].
  { exists ([], cap, n, U), []. split; [now left|].
    unfold fits, holds_content, volume, number, value. simpl. repeat split; auto.
    unfold bounded in B. rewrite !orb_false_iff in B. destruct B as [[B _] _].
    unfold small in B. cbn [critical per_size per_block divided_by sum fold_right] in B.
    destruct n; apply andb_false_iff in B as [B|B]; try discriminate B; apply Z.ltb_ge in B; lia. }
  pose proof (Forall_inv Z1) as Zx. pose proof (Forall_inv_tail Z1) as Zr. cbn in Zx.
  pose proof (Forall_inv R3) as Rx. pose proof (Forall_inv_tail R3) as Rr. cbn in Rx.
  assert (Rest : forall c, fits (rest, cap, n, U) c -> U < value c -> exists st c,
    In st ((x :: rest, cap, n, U) :: stack) /\ fits st c /\ snd st < value c).
  { intros c ((E & N) & V & W) G. exists (x :: rest, cap, n, U), ((x, 0) :: c). split; [now left|].
    unfold fits, holds_content, volume, number, value in *. rewrite !sum_cons.
    cbn [map fst snd]. rewrite E. repeat split; try lia.
    - constructor; [cbn; lia|assumption].
    - intros l Hl. specialize (W l Hl). lia. }
  destruct ((1 <=? most x) && (size x <=? cap) && is_within n 1) eqn:T.
  - rewrite !andb_true_iff, !Z.leb_le, is_within_iff in T. destruct T as [[T1 T2] T3].
    destruct (IH _ H) as (st & c & I & K & G).
    { repeat constructor; assumption. }
    { constructor; [|constructor; [repeat split; assumption|assumption]]. repeat split; [lia| |].
      - intros l Hl. destruct n as [n|]; [|discriminate]. injection Hl as <-.
        specialize (T3 n eq_refl). lia.
      - constructor; [cbn; lia|assumption]. }
    destruct I as [<-|[<-|I]]; [|now apply (Rest c)|exists st, c; split; [now right|now split]].
    destruct c as [|[y z] c]; [destruct K as [[E _] _]; discriminate|].
    destruct K as ((E & N) & V & W). injection E as -> E.
    pose proof (Forall_inv N) as Nx. pose proof (Forall_inv_tail N) as Nr. cbn in Nx.
    exists (x :: rest, cap, n, U), ((x, z + 1) :: c). split; [now left|].
    unfold fits, holds_content, volume, number, value in *. rewrite !sum_cons in *.
    cbn [map fst snd one_less size worth] in *. rewrite E. repeat split; try lia.
    + constructor; [cbn; lia|assumption].
    + intros l ->. specialize (W (l - 1) eq_refl). lia.
  - destruct (IH _ H) as (st & c & I & K & G).
    { repeat constructor; assumption. }
    { constructor; [repeat split; assumption|assumption]. }
    destruct I as [<-|I]; [now apply (Rest c)|]. exists st, c. split; [now right|now split].
Qed.

(** Dearest per size first. *)
Fixpoint insert_piece (x : piece) (l : list piece) : list piece :=
  match l with
  | [] => [x]
  | y :: r => if worth x * size y <=? worth y * size x then y :: insert_piece x r else x :: l
  end.
Definition sort_pieces (l : list piece) : list piece := fold_right insert_piece [] l.

Lemma sort_pieces_perm l : Permutation (sort_pieces l) l.
Proof.
  assert (forall x l, Permutation (insert_piece x l) (x :: l)) as K.
  { intros x m. induction m as [|y m IH]; cbn [insert_piece]; [reflexivity|].
    destruct (_ <=? _); [|reflexivity]. rewrite IH. apply perm_swap. }
  induction l as [|x l IH]; [reflexivity|]. cbn [sort_pieces fold_right]. fold (sort_pieces l).
  now rewrite K, IH.
Qed.

Definition counts_piece (x : piece) : bool := (0 <? worth x) && (0 <? size x) && (0 <? most x).

(** Whether all contents are worth at most U. *)
Definition at_most (fuel : nat) (pieces : list piece) (cap : Z) (n : option Z) (U : Z) : bool :=
  if (cap <? 0) || negb (is_within n 0) then true
  else match fill fuel [(sort_pieces (filter counts_piece pieces), cap, n, U)] with
       | Some b => b
       | None => false
       end.

Theorem at_most_sound fuel pieces cap n U c :
  at_most fuel pieces cap n U = true -> holds_content pieces c ->
  (forall x, In x pieces -> 0 < most x -> 0 < size x) ->
  volume c <= cap -> within n (number c) -> value c <= U.
Proof.
  unfold at_most. intros H [E N] Hs V W.
  assert (P : forall x, In x c -> 0 <= size (fst x) * snd x).
  { intros x Hx. rewrite Forall_forall in N. pose proof (N x Hx). rewrite <- E in Hs.
    destruct (Z.lt_ge_cases 0 (most (fst x))) as [G|G];
      [specialize (Hs (fst x) (in_map fst _ _ Hx) G); nia|assert (snd x = 0) as -> by lia; lia]. }
  assert (0 <= volume c) by now apply sum_nonneg.
  assert (0 <= number c).
  { apply sum_nonneg. intros x Hx. rewrite Forall_forall in N. specialize (N x Hx). lia. }
  destruct (Z.ltb_spec cap 0); [lia|]. destruct (is_within n 0) eqn:T; cbn [negb orb] in H.
  2:{ assert (~ within n 0) as T' by (rewrite <- is_within_iff; congruence).
      exfalso. apply T'. intros l Hl. specialize (W l Hl). lia. }
  set (keep := fun x : piece * Z => counts_piece (fst x)).
  assert (E' : map fst (filter keep c) = filter counts_piece pieces).
  { rewrite <- E. clear. induction c as [|x c IH]; [reflexivity|]. cbn [filter map].
    unfold keep at 1. destruct (counts_piece (fst x)); cbn [map]; now rewrite IH. }
  assert (V' : volume (filter keep c) <= cap).
  { etransitivity; [|exact V]. unfold volume. rewrite sum_filter. apply sum_le. intros x Hx.
    specialize (P x Hx). destruct (keep x); lia. }
  assert (M : number (filter keep c) <= number c).
  { unfold number. rewrite sum_filter. apply sum_le. intros x Hx.
    rewrite Forall_forall in N. specialize (N x Hx). destruct (keep x); lia. }
  assert (L : value c <= value (filter keep c)).
  { unfold value. rewrite sum_filter. apply sum_le. intros x Hx. rewrite Forall_forall in N.
    specialize (N x Hx). unfold keep, counts_piece. rewrite <- E in Hs.
    specialize (Hs (fst x) (in_map fst _ _ Hx)).
    destruct (Z.ltb_spec 0 (worth (fst x))), (Z.ltb_spec 0 (size (fst x))),
      (Z.ltb_spec 0 (most (fst x))); cbn [andb];
      first [lia | assert (snd x = 0) as -> by lia; lia | nia]. }
  pose proof (Permutation_sym (sort_pieces_perm (filter counts_piece pieces))) as Q.
  rewrite <- E' in Q at 1. apply Permutation_sym, Permutation_map_inv in Q as (c' & EQ & Q).
  destruct (fill _ _) as [b|] eqn:F; [subst b|discriminate].
  etransitivity; [exact L|]. unfold value. rewrite (sum_perm _ _ _ Q). fold (value c').
  apply (fill_sound fuel _ F) with (st := (sort_pieces (filter counts_piece pieces), cap, n, U));
    [|now left|].
  - constructor; [|constructor]. cbn [sized]. eapply Permutation_Forall;
      [symmetry; apply sort_pieces_perm|]. apply Forall_forall. intros x Hx.
    apply filter_In in Hx as [_ Hx]. unfold counts_piece in Hx.
    rewrite !andb_true_iff, !Z.ltb_lt in Hx. tauto.
  - unfold fits, holds_content, volume, number in *. rewrite <- !(sum_perm _ _ _ Q).
    rewrite EQ. repeat split; [|assumption|].
    + eapply Permutation_Forall; [exact Q|]. apply Forall_forall. intros x Hx.
      apply filter_In in Hx as [Hx _]. rewrite Forall_forall in N. now apply N.
    + intros l Hl. specialize (W l Hl). lia.
Qed.
