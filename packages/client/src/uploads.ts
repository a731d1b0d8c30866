/**
 * Files in variables, by the GraphQL multipart request specification:
 * https://github.com/jaydenseric/graphql-multipart-request-spec
 */

/** Progress of an upload, in bytes of the whole request. */
export interface Progress {
  readonly sent: number;
  readonly total: number;
}

interface FilesApart {
  readonly variables: unknown;
  /** Each file with its paths in the variables. */
  readonly files: ReadonlyMap<Blob, string[]>;
}

/** Replaces each file with null. */
export function filesApart(variables: unknown): FilesApart {
  const files = new Map<Blob, string[]>();
  const walk = (value: unknown, path: string): unknown => {
    if (value instanceof Blob) {
      files.set(value, [...(files.get(value) ?? []), path]);
      return null;
    }
    if (Array.isArray(value)) return value.map((item, index) => walk(item, `${path}.${index}`));
    if (typeof value !== "object" || value === null || value instanceof Date) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, walk(one, `${path}.${key}`)]));
  };
  return { variables: walk(variables, "variables"), files };
}

/** The body of a multipart request. The parts are in the order in which the service reads them. */
export function multipart(operation: object, files: FilesApart["files"]): FormData {
  const form = new FormData();
  const paths = [...files.values()];
  form.append("operations", JSON.stringify(operation));
  form.append("map", JSON.stringify(Object.fromEntries(paths.map((at, index) => [String(index), at]))));
  for (const [index, file] of [...files.keys()].entries())
    form.append(String(index), file, (file as Partial<File>).name ?? "file");
  return form;
}

/** The only API of browsers that reports the progress of uploads. */
interface XhrLike {
  upload: { onprogress: ((event: { loaded: number; total: number }) => void) | null };
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  status: number;
  responseText: string;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getAllResponseHeaders(): string;
  abort(): void;
  send(body: FormData): void;
}

/**
 * Sends a form and reports its progress: by XMLHttpRequest in browsers, elsewhere by counting the body while it is
 * read.
 */
export async function sendForm(
  url: string,
  init: { headers: Record<string, string>; signal: AbortSignal },
  form: FormData,
  onProgress: (progress: Progress) => void,
  fetchIt: typeof fetch,
): Promise<Response> {
  const Xhr = (globalThis as { XMLHttpRequest?: new () => XhrLike }).XMLHttpRequest;
  if (Xhr) return sendByXhr(new Xhr(), url, init, form, onProgress);
  const whole = new Response(form);
  const type = whole.headers.get("content-type")!;
  const bytes = await whole.blob();
  const total = bytes.size;
  let sent = 0;
  const counted = bytes.stream().pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk);
        sent += chunk.byteLength;
        onProgress({ sent, total });
      },
    }),
  );
  const headers = { ...init.headers, "content-type": type };
  return fetchIt(url, { ...init, method: "POST", headers, body: counted, duplex: "half" } as RequestInit);
}

function sendByXhr(
  xhr: XhrLike,
  url: string,
  { headers, signal }: { headers: Record<string, string>; signal: AbortSignal },
  form: FormData,
  onProgress: (progress: Progress) => void,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    xhr.open("POST", url);
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    const abort = () => xhr.abort();
    const end = (settle: () => void) => () => {
      signal.removeEventListener("abort", abort);
      settle();
    };
    signal.addEventListener("abort", abort, { once: true });
    xhr.upload.onprogress = ({ loaded, total }) => onProgress({ sent: loaded, total });
    xhr.onerror = end(() => reject(new TypeError("The upload failed.")));
    xhr.onabort = end(() => reject(signal.reason));
    xhr.onload = end(() => {
      const lines = xhr
        .getAllResponseHeaders()
        .trim()
        .split(/[\r\n]+/);
      const told = lines.map((line): [string, string] => {
        const at = line.indexOf(":");
        return [line.slice(0, at), line.slice(at + 1).trim()];
      });
      resolve(new Response(xhr.responseText, { status: xhr.status, headers: told }));
    });
    xhr.send(form);
  });
}
