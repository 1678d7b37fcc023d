import type { JsonObject } from './request.ts'

/** One call of an action by an AWS SDK. */
export interface AwsCall {
  action: string
  input: JsonObject
  host: string
  authorization: string
  /** Aborts when the caller hangs up or the server closes: a long wait should end then. */
  signal: AbortSignal
}

/** A stand-in for one AWS service that speaks an AWS JSON protocol. */
export interface AwsService {
  /** The service's name in `X-Amz-Target`. */
  target: string
  contentType: string
  /** What precedes an error code in `__type`. */
  errorNamespace: string
  /** When given, only requests signed with this access key are answered. */
  accessKeyId?: string | undefined
  /** Performs the call; an `AwsFault` is answered as AWS would. */
  answer(call: AwsCall): JsonObject | Promise<JsonObject>
  /** Takes back an answer whose caller had gone. */
  undelivered?(call: AwsCall, answer: JsonObject): void
  /** Called once, after the last answer. */
  release?(): void
  /** Routes beside the AWS protocol, such as `GET /_metrics`; all but GET ask for the access key, too. */
  control?: Readonly<Record<string, (input: JsonObject) => JsonObject>>
}
