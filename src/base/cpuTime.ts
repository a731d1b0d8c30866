/**
 * CPU time of this thread in milliseconds. For limits on work: on a busy machine a piece of work takes longer, which
 * should not count.
 */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
