(** The dearest content of a machine of a set where some contents are worth something extra.

    An extra is paid to a machine that has at least so many blocks of some types. Either it has, or
    of one of these types it has fewer; so the contents are cut into boxes, in each of which an extra
    is paid to all contents or to none. *)
From CMS Require Export Fill.

(** Whether there are so many blocks of each type. *)
Fixpoint reaches (least z : list Z) : bool :=
  match least, z with
  | [], _ => true
  | l :: least, n :: z => (l <=? n) && reaches least z
  | l :: least, [] => (l <=? 0) && reaches least []
  end.

(** Worth and size of a block of each type; the least and the largest number of it. *)
Notation kind := (Z * Z)%type.
Notation range := (Z * Z)%type.
Notation extra := (list Z * Z)%type.

Fixpoint raised (least : list Z) (ranges : list range) : list range :=
  match least, ranges with
  | l :: least, r :: ranges => (Z.max (fst r) l, snd r) :: raised least ranges
  | _, _ => ranges
  end.
(** The ways not to reach: one for each type. *)
Fixpoint lowered (least : list Z) (ranges : list range) : list (list range) :=
  match least, ranges with
  | [], _ => []
  | l :: least, r :: ranges =>
      (if 0 <? l then [(fst r, Z.min (snd r) (l - 1)) :: ranges] else [])
      ++ map (cons r) (lowered least ranges)
  | l :: least, [] => if 0 <? l then [[]] else lowered least []
  end.

Definition total_of (f : kind -> Z) (kinds : list kind) (z : list Z) : Z :=
  sum (fun x => f (fst x) * snd x) (combine kinds z).
Definition added_up (z : list Z) : Z := sum (fun n => n) z.
Definition bonus (extras : list extra) (z : list Z) : Z :=
  sum (fun e => if reaches (fst e) z then snd e else 0) extras.

Definition pieces_of (kinds : list kind) (ranges : list range) : list piece :=
  map (fun x => {| worth := fst (fst x); size := snd (fst x); most := snd (snd x) - fst (snd x) |})
      (combine kinds ranges).

Fixpoint boxes (fuel : nat) (kinds : list kind) (cap : Z) (n : option Z)
    (extras : list extra) (ranges : list range) (U : Z) : bool :=
  existsb (fun r => snd r <? fst r) ranges
  || match extras with
     | [] =>
         let low := map fst ranges in
         at_most fuel (pieces_of kinds ranges) (cap - total_of snd kinds low)
           (less n (added_up low)) (U - total_of fst kinds low)
     | (least, amount) :: extras =>
         boxes fuel kinds cap n extras (raised least ranges) (U - amount)
         && forallb (fun r => boxes fuel kinds cap n extras r U) (lowered least ranges)
     end.

(** The numbers z lie in the ranges; only types with a size may have a range. *)
Fixpoint lies (kinds : list kind) (ranges : list range) (z : list Z) : Prop :=
  match kinds, ranges, z with
  | [], [], [] => True
  | k :: kinds, r :: ranges, n :: z =>
      (0 <= fst r <= n /\ n <= snd r /\ (0 < snd r -> 0 < snd k)) /\ lies kinds ranges z
  | _, _, _ => False
  end.

Lemma lies_raised kinds : forall ranges z least, lies kinds ranges z -> reaches least z = true ->
  lies kinds (raised least ranges) z.
Proof.
  induction kinds as [|k kinds IH]; intros [|r ranges] [|n z] [|l least] L R; cbn in L;
    try (cbn; tauto).
  cbn [raised lies reaches fst snd] in *. apply andb_true_iff in R as [R1 R2]. apply Z.leb_le in R1.
  split; [intuition lia|]. apply IH; tauto.
Qed.

Lemma lies_lowered kinds : forall ranges z least, lies kinds ranges z -> reaches least z = false ->
  exists r, In r (lowered least ranges) /\ lies kinds r z.
Proof.
  induction kinds as [|k kinds IH]; intros [|r ranges] [|n z] least L R; cbn in L; try tauto.
  - induction least as [|l least IHl]; [discriminate|]. cbn [reaches lowered] in *.
    destruct (Z.ltb_spec 0 l); [exists []; simpl; auto|].
    destruct (Z.leb_spec l 0); [|lia]. now apply IHl.
  - destruct least as [|l least]; [discriminate|]. cbn [reaches lowered] in *.
    destruct L as [L1 L2]. destruct (Z.leb_spec l n).
    + destruct (IH ranges z least L2 R) as (r' & I & L'). exists (r :: r'). split.
      * apply in_or_app. right. now apply in_map.
      * split; assumption.
    + destruct (Z.ltb_spec 0 l); [|lia]. eexists. split; [left; reflexivity|].
      cbn [lies fst snd]. split; [intuition lia|assumption].
Qed.

(** The blocks beyond the least numbers. *)
Definition beyond (kinds : list kind) (ranges : list range) (z : list Z) : content :=
  combine (pieces_of kinds ranges) (map (fun x => snd x - fst (fst x)) (combine ranges z)).

Lemma beyond_fits kinds : forall ranges z, lies kinds ranges z ->
  holds_content (pieces_of kinds ranges) (beyond kinds ranges z)
  /\ (forall x, In x (pieces_of kinds ranges) -> 0 < most x -> 0 < size x)
  /\ value (beyond kinds ranges z) = total_of fst kinds z - total_of fst kinds (map fst ranges)
  /\ volume (beyond kinds ranges z) = total_of snd kinds z - total_of snd kinds (map fst ranges)
  /\ number (beyond kinds ranges z) = added_up z - added_up (map fst ranges).
Proof.
  induction kinds as [|k kinds IH]; intros [|r ranges] [|n z] L; cbn in L; try tauto.
  - repeat split; try reflexivity; [constructor|intros x []].
  - destruct L as [L1 L2]. destruct (IH ranges z L2) as ((I1 & I2) & I3 & I4 & I5 & I6).
    unfold beyond, pieces_of, holds_content, value, volume, number, total_of, added_up in *.
    cbn [combine map fst snd] in *. rewrite !sum_cons. cbn [fst snd worth size most].
    rewrite I1, I4, I5, I6. repeat split; try lia.
    + constructor; [cbn; lia|assumption].
    + intros x [<-|Hx] Hm; [cbn in *; lia|now apply I3].
Qed.

Theorem boxes_sound fuel kinds cap n z extras : forall ranges U,
  boxes fuel kinds cap n extras ranges U = true -> lies kinds ranges z ->
  total_of snd kinds z <= cap -> within n (added_up z) ->
  total_of fst kinds z + bonus extras z <= U.
Proof.
  induction extras as [|[least amount] extras IH]; intros ranges U H L V W; cbn [boxes] in H.
  - destruct (existsb _ _) eqn:X.
    { exfalso. apply existsb_exists in X as (r & Hr & X). apply Z.ltb_lt in X. clear H V W.
      revert ranges z L Hr. induction kinds as [|k kinds IH]; intros [|r' ranges] [|m z] L;
        cbn in L; try tauto. intros [->|Hr]; [lia|]. destruct L as [_ L]. now apply (IH ranges z). }
    cbn [orb] in H. destruct (beyond_fits kinds ranges z L) as (B1 & B2 & B3 & B4 & B5).
    pose proof (at_most_sound _ _ _ _ _ _ H B1 B2) as K. rewrite B3, B4 in K.
    unfold bonus. cbn [sum fold_right].
    enough (total_of fst kinds z - total_of fst kinds (map fst ranges)
            <= U - total_of fst kinds (map fst ranges)) by lia.
    apply K; [lia|]. rewrite B5. intros l Hl. destruct n as [n|]; [|discriminate].
    injection Hl as <-. specialize (W n eq_refl). lia.
  - unfold bonus in *. rewrite sum_cons. cbn [fst snd].
    destruct (existsb _ _) eqn:X.
    { exfalso. apply existsb_exists in X as (r & Hr & X). apply Z.ltb_lt in X. clear H V W IH.
      revert ranges z L Hr. induction kinds as [|k kinds IH]; intros [|r' ranges] [|m z] L;
        cbn in L; try tauto. intros [->|Hr]; [lia|]. destruct L as [_ L]. now apply (IH ranges z). }
    cbn [orb] in H. apply andb_true_iff in H as [H1 H2]. rewrite forallb_forall in H2.
    destruct (reaches least z) eqn:R.
    + specialize (IH _ _ H1 (lies_raised _ _ _ _ L R) V W). lia.
    + destruct (lies_lowered _ _ _ _ L R) as (r & I & L'). specialize (IH _ _ (H2 r I) L' V W). lia.
Qed.
