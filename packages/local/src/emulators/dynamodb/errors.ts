/** An error in the format of AWS: `__type` is its name. */
export class AwsError extends Error {
  readonly statusCode: number
  readonly body: Record<string, unknown>

  constructor(type: string, message: string, extra: Record<string, unknown> = {}, statusCode = 400) {
    super(message)
    this.statusCode = statusCode
    this.body = { __type: type, message, ...extra }
  }
}

/** Includes errors of dynalite, which have the same two fields. */
export function isAwsError(error: unknown): error is AwsError {
  return error instanceof Error && 'statusCode' in error && 'body' in error
}

/** Returns the name without its namespace, as `error.name` of the SDK does. */
export function errorName(error: AwsError): string {
  return String(error.body['__type']).split('#').at(-1) ?? ''
}

export function validationError(message: string): AwsError {
  return new AwsError('com.amazon.coral.validate#ValidationException', message)
}

export function constraintError(value: string, path: string, constraint: string): AwsError {
  return validationError(
    `1 validation error detected: Value ${value} at '${path}' failed to satisfy constraint: ${constraint}`,
  )
}

export function dynamoError(name: string, message: string, extra: Record<string, unknown> = {}): AwsError {
  return new AwsError(`com.amazonaws.dynamodb.v20120810#${name}`, message, extra)
}

export function serviceError(name: string, message?: string): AwsError {
  return new AwsError(`com.amazon.coral.service#${name}`, message ?? name)
}

/** DynamoDB has no such error, because its storage has no limit. */
export const storageFullError = (): AwsError => dynamoError('StorageFullException', 'The disk is full.')

export const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && /No space left on device|Disk quota exceeded/.test(error.message)

export interface CancellationReason {
  Code: string
  Message?: string
  Item?: unknown
}

/** Takes one reason for each write of the transaction, in the order of the request. */
export function transactionCanceledError(reasons: CancellationReason[]): AwsError {
  const codesText = reasons.map((reason) => reason.Code).join(', ')
  const message = `Transaction cancelled, please refer cancellation reasons for specific reasons [${codesText}]`
  return dynamoError('TransactionCanceledException', message, { Message: message, CancellationReasons: reasons })
}
