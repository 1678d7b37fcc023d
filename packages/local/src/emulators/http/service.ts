import type { JsonObject } from './request.ts'

export interface AwsCall {
  action: string
  input: JsonObject
  host: string
  authorization: string
  /** Aborts when the caller disconnects or the server closes, to end a long poll. */
  signal: AbortSignal
}

/** Routes beside the AWS protocol, such as `GET /_metrics`. */
export type ControlRoutes = Readonly<Record<string, (input: JsonObject) => JsonObject>>

/** An emulator of one AWS service with an AWS JSON protocol. */
export interface AwsService {
  /** The service's name in `X-Amz-Target`. */
  target: string
  contentType: string
  /** The prefix of an error code in `__type`. */
  errorNamespace: string
  /** If given, requests must be signed with this access key. */
  accessKeyId?: string | undefined
  /** Performs the call; throws `AwsServiceError` for an error of AWS. */
  respond(call: AwsCall): JsonObject | Promise<JsonObject>
  /** Reverts a response that the caller did not receive. */
  onUndelivered?(call: AwsCall, output: JsonObject): void
  /** Called once, after the last response. */
  onClose?(): void
  control?: ControlRoutes
}
