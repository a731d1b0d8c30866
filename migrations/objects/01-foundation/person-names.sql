-- Names of people, taken apart for greetings. A name is what somebody typed into one field; this reads it as the
-- languages do that write the given name first, and leaves whole what it cannot tell.
--
--   Bo Larsen, Dr. Bo Larsen Jr.      Bo | Larsen
--   Ludwig van Beethoven              Ludwig | van Beethoven
--   Juan Carlos García López          Juan Carlos | García López
--   Larsen, Bo                        Bo | Larsen
--   Bo & Ann Larsen                   Bo & Ann | Larsen
--   Иванов Иван Иванович              Иван | Иванов
--   Mr. Larsen                        – | Larsen
--   王小明, 山田 太郎, 김민수           – | –: scripts of languages that write the family name first
--   Larsen Holdings Ltd, bo@…         – | –: no name of a person

create function app_hidden.split_name(name text, out given text, out family text)
language plpgsql immutable strict parallel safe as $$
declare
  -- PERF: of their type here, the lists are read once and not for each name.
  titles constant text[] := '{mr,mrs,ms,miss,mx,dr,prof,professor,sir,rev,herr,frau,mme,mlle,monsieur,madame,'
    'mademoiselle,sr,sra,srta,señor,señora,señorita}'::text[];
  suffixes constant text[] := '{jr,sr,ii,iii,iv,phd,md,esq,mba}'::text[];
  companies constant text[] := '{ltd,limited,inc,llc,llp,corp,corporation,gmbh,sarl,plc,holdings,properties,realty,'
    'realtors,estates,group,associates,partners,investments,consulting,services,company,bank}'::text[];
  -- These begin a family name in any case; the others are given names too, unless they are written small.
  particles constant text[] := '{van,von,der,den,de,del,della,dos,das,du,ter,zu,zum,zur,af,av,bint,ibn}'::text[];
  small_particles constant text[] := '{da,di,do,la,le,el,al,bin,ben,ten,san,بن,بنت}'::text[];
  conjunctions constant text[] := '{&,and,und,et,och,og}'::text[];
  patronymic constant text := '(ович|евич|ич|овна|евна|ична|инична|івна)$';
  whole text := btrim(regexp_replace(regexp_replace(name, '\([^)]*\)', ' ', 'g'), '\s+', ' ', 'g'));
  words text[];
  plain text[];
  first_part record;
  second_part record;
  is_titled boolean := false;
  amount int;
  begins int;
begin
  if length(whole) > 100 or whole ~ '[0-9<>@:/\\{}|_=*^%$#!?;"\[\]~]'
    or whole ~ '[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]' then
    return;
  end if;
  words := string_to_array(whole, ' ');
  plain := string_to_array(lower(translate(whole, '.,', '')), ' ');
  if plain && companies then
    return;
  end if;
  if position(',' in whole) > 0 then
    if not string_to_array(lower(translate(btrim(split_part(whole, ',', 2)), '.', '')), ' ') <@ suffixes then
      select * into first_part from app_hidden.split_name(split_part(whole, ',', 2));
      given := concat_ws(' ', first_part.given, first_part.family);
      given := nullif(given, '');
      family := nullif(btrim(split_part(whole, ',', 1)), '');
      return;
    end if;
    words := string_to_array(btrim(split_part(whole, ',', 1)), ' ');
    plain := string_to_array(lower(translate(btrim(split_part(whole, ',', 1)), '.', '')), ' ');
  end if;
  for place in 2 .. cardinality(words) - 1 loop
    if plain[place] = any (conjunctions) then
      select * into first_part from app_hidden.split_name(array_to_string(words[:place - 1], ' '));
      select * into second_part from app_hidden.split_name(array_to_string(words[place + 1:], ' '));
      given := first_part.given || ' ' || words[place] || ' ' || second_part.given;
      family := case when first_part.family <> second_part.family then null
        else coalesce(second_part.family, first_part.family) end;
      return;
    end if;
  end loop;
  while plain[1] = any (titles) loop
    words := words[2:];
    plain := plain[2:];
    is_titled := true;
  end loop;
  while cardinality(plain) > 1 and plain[cardinality(plain)] = any (suffixes) loop
    words := trim_array(words, 1);
    plain := trim_array(plain, 1);
  end loop;
  amount := cardinality(words);
  if amount < 2 then
    given := case when not is_titled then words[1] end;
    family := case when is_titled then words[1] end;
    return;
  end if;
  if amount = 3 and words[3] ~ patronymic and words[2] !~ patronymic then
    given := words[2];
    family := words[1];
    return;
  elsif amount = 3 and words[2] ~ patronymic then
    given := words[1];
    family := words[3];
    return;
  end if;
  for place in 2 .. amount - 1 loop
    if plain[place] = any (particles) or words[place] = any (small_particles) then
      begins := place;
    elsif place > 2 and words[place] in ('y', 'i') then
      begins := place - 1;
    end if;
    exit when begins is not null;
  end loop;
  -- Four words are two given names and two family names, as they are in Spanish and Portuguese.
  begins := coalesce(begins, case when amount > 3 and words[amount - 1] !~ '^.\.?$' then amount - 1 else amount end);
  if words[1] = 'عبد' then
    begins := greatest(begins, 3);
  end if;
  given := nullif(array_to_string(words[:begins - 1], ' '), '');
  family := nullif(array_to_string(words[begins:], ' '), '');
end $$;
comment on function app_hidden.split_name(text) is
  'Given name and family name in a full name, each null if unknown; both for what is no name of a person, or is '
  'written in a script of languages that put the family name first.';

create function app_private.names_in_texts(first_name text, last_name text, name text, fallback text) returns jsonb
language sql immutable parallel safe as $$
  select jsonb_build_object('firstName', coalesce(first_name, s.given, fallback), 'lastName',
    coalesce(last_name, s.family))
  from (select 1) one left join lateral app_hidden.split_name(name) s on true
$$;
comment on function app_private.names_in_texts(text, text, text, text) is
  'The names of a person as texts greet by them: those that are filled in, else those in the full name; the first name '
  'is the fallback where neither tells one, so that no greeting goes out without a name.';
