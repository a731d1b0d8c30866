/** An error in the format of the API. */
export class ApiError extends Error {
  readonly status: number;
  readonly body: Record<string, unknown>;

  constructor(status: number, type: string, message: string, more: Record<string, unknown> = {}) {
    super(message);
    this.status = status;
    this.body = { type, message, ...more };
  }
}

/** A refused request, with HTTP status 400. @param param name of the invalid parameter */
export const invalid = (message: string, param?: string, code?: string) =>
  new ApiError(400, "invalid_request_error", message, { ...(param && { param }), ...(code && { code }) });

/** A record that does not exist, with HTTP status 404. @param param name of the parameter with its id */
export const missing = (kind: string, id: string, param = "id") =>
  new ApiError(
    404,
    "invalid_request_error",
    `No such ${kind === "payment_method" ? "PaymentMethod" : kind}: '${id}'`,
    { code: "resource_missing", param },
  );
