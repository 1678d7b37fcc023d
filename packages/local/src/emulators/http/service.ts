import type { JsonObject } from './request.ts'

export interface AwsCall {
  action: string
  input: JsonObject
  host: string
  authorization: string
  /** Aborts when the caller disconnects or the server closes, to end a long poll. */
  signal: AbortSignal
}

/** Routes outside the AWS protocol, such as `GET /_metrics`. */
export type ControlRoutes = Readonly<Record<string, (input: JsonObject) => JsonObject>>

/** An emulated service with an AWS JSON protocol. */
export interface AwsService {
  /** Name of the service in `X-Amz-Target`. */
  target: string
  contentType: string
  /** Prefix of error codes in `__type`. */
  errorNamespace: string
  /** If given, HTTP requests must name this access key in their signature, which is not verified. */
  accessKeyId?: string | undefined
  /** Throws `AwsServiceError` for an error that AWS would return. */
  respond(call: AwsCall): JsonObject | Promise<JsonObject>
  /** Reverts the effects of a response that the caller did not receive. */
  onUndelivered?(call: AwsCall, output: JsonObject): void
  /** Called once, after the last response. */
  onClose?(): void
  control?: ControlRoutes
}
