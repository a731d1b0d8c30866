/** The bare address of a mailbox such as `Plat <no-reply@example.com>`. */
export function bareAddress(from: string): string {
  return /<([^<>]+)>\s*$/.exec(from)?.[1] ?? from.trim();
}
