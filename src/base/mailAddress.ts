/** The bare address of a sender such as `Plat <no-reply@example.com>`. */
export function bareAddress(from: string): string {
  return /<([^<>]+)>\s*$/.exec(from)?.[1] ?? from.trim();
}
