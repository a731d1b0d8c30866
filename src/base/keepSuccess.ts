/**
 * Does asynchronous work on the first call and keeps the result for later ones. A failure is not kept: the next call
 * does the work again.
 */
export function keepSuccess<T>(work: () => Promise<T>): () => Promise<T> {
  let kept: Promise<T> | undefined;
  return () => {
    const result = (kept ??= work());
    result.catch(() => {
      if (kept === result) kept = undefined;
    });
    return result;
  };
}
