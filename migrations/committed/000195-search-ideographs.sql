--! Previous: sha1:b54ca56fe481d9782a97cc5fc0ee4feabab524d2
--! Hash: sha1:42724f867062e4fa58eda91a04ebbc85f7a7d9fb
--! Message: search-ideographs

-- Scripts that are written without spaces have no words to begin: each of their letters is one, so that a family name and a
-- given name are found alone as well as together.

create or replace function app_hidden.search_text(value text) returns text
language plpgsql immutable parallel safe as $$
declare
  is_wide constant boolean := octet_length(value) > length(value);
  -- Separators are named, not classes of characters, which depend on the locale of the database.
  words text := regexp_replace(app_hidden.fold(case when is_wide then normalize(value, NFKC) else value end),
    '[\u0001-/:-@\[-`{-\u00bf\u2000-\u206f\u3000-\u303f]+', ' ', 'g');
begin
  if is_wide then
    -- Kana, ideographs, Hangul syllables.
    words := regexp_replace(regexp_replace(words, '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af])', ' \1 ', 'g'), ' +', ' ', 'g');
  end if;
  words := btrim(words);
  return case when words ~ '[0-9][^0-9 ]|[^0-9 ][0-9]' then regexp_replace(words, '(?<=[0-9])(?=[^0-9 ])|(?<=[^0-9 ])(?=[0-9])', ' ', 'g') else words end;
end $$;
comment on function app_hidden.search_text(text) is
  'The words of a text with a space between them, without case, accents and punctuation, cut where letters and digits meet, and after each letter of a script without spaces: A1203 is found by 1203 and as A-1203.';

update app_private.search_texts t set names = ' ' || app_hidden.search_text(t.names) || ' ', more = app_hidden.search_text(t.more) || ' '
where t.names || t.more ~ '[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af]';
