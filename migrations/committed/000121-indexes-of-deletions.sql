--! Previous: sha1:14541aadfa19221b3237d396951b46e1b008571b
--! Hash: sha1:0ffcc7624e1d80a6a625c54cc1c86b6d3cd3a58f
--! Message: indexes-of-deletions

-- What is deleted with an organization or erased of a person is found by whom it went to, and by the record. Small
-- tables: mails of the last weeks, and names of projects and organizations.
-- squawk-ignore require-concurrent-index-creation
create index mail_deliveries_recipient on app_private.mail_deliveries (recipient);
-- squawk-ignore require-concurrent-index-creation
create index slugs_record on app_private.slugs (record_id);
