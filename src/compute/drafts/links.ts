/** Links and addresses of a draft: only those that facts contain. */
import { excerpt, type Reading } from "./reading.ts";

/** Matches links by host; mail addresses and links to other hosts become violations. */
export function readLinks(reading: Reading): void {
  const hosts = new Map(
    reading.facts
      .filter(({ kind, value }) => kind === "link" && URL.canParse(value))
      .map((fact) => [new URL(fact.value).host, fact]),
  );
  const readLink = (link: string) => {
    const address = link.replace(/[).,;:!?\]]+$/, "");
    const absolute = /^https?:\/\//i.test(address) ? address : `https://${address}`;
    const url = URL.canParse(absolute) ? new URL(absolute) : undefined;
    const fact = url && !url.username ? hosts.get(url.host) : undefined;
    if (fact) reading.used.add(fact.key);
    else reading.refuse(`No known address: ${excerpt(address)}.`);
  };
  reading.take(/[^\s@<>()]+@[^\s@<>()]+/g, ([match]) =>
    reading.refuse(`No known address: ${excerpt(match)}.`),
  );
  reading.take(/\b[a-z][a-z0-9+.-]*:\/\/\S+|\b(?:www\.|javascript:|data:|mailto:|tel:)\S+/gi, ([match]) =>
    readLink(match),
  );
  reading.take(
    /(?<![\p{L}\p{N}])[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*\.\p{L}{2,}(?:\/\S*)?(?![\p{L}\p{N}])/gu,
    ([match]) => readLink(match),
  );
  reading.take(/\b(?:dot|punkt|punto|point)\s+(?:com|net|org|info|io|biz|co|ru)\b/gi, ([match]) =>
    reading.refuse(`No known address: ${excerpt(match)}.`),
  );
}
