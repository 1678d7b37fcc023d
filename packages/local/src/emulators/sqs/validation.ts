import { AwsServiceError } from '../http/error.ts'
import { type JsonObject, objectsIn } from '../http/request.ts'
import type { AwsCall } from '../http/service.ts'

/** SQS rejects characters that XML does not allow, such as lone surrogates. */
const forbiddenCharacter = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u
const receiptHandlePattern = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/
const maxDelaySeconds = 900
const maxWaitSeconds = 20
const maxBatchEntries = 10

type Check = (input: JsonObject) => AwsServiceError | undefined

/** Detects inputs that this emulator rejects and fauxqs accepts, by action. Checks each entry of a batch. */
const checks: Readonly<Record<string, Check>> = {
  CreateQueue: ({ QueueName: name }) =>
    String(name).endsWith('.fifo') ? invalidParameterError('FIFO queues are not supported here.') : undefined,
  SendMessage: checkMessage,
  SendMessageBatch: checkMessage,
  ReceiveMessage: ({ WaitTimeSeconds: wait }) => checkRange('WaitTimeSeconds', wait, maxWaitSeconds),
  DeleteMessage: checkHandle,
  DeleteMessageBatch: checkHandle,
  ChangeMessageVisibility: checkHandle,
  ChangeMessageVisibilityBatch: checkHandle,
}

/** Performs a call that passes its check. For a batch, performs only the entries that pass. */
export async function performChecked(
  call: AwsCall,
  perform: (call: AwsCall) => Promise<JsonObject>,
): Promise<JsonObject> {
  const check = checks[call.action]
  if (check === undefined) return perform(call)
  if (call.action.endsWith('Batch')) return performBatch(call, check, perform)
  const error = check(call.input)
  if (error !== undefined) throw error
  return perform(call)
}

async function performBatch(call: AwsCall, check: Check, perform: (call: AwsCall) => Promise<JsonObject>) {
  const entries = objectsIn(call.input['Entries'])
  const rejectedEntries = new Map<JsonObject, JsonObject>()
  for (const entry of entries) {
    const error = check(entry)
    if (error === undefined) continue
    rejectedEntries.set(entry, { Id: entry['Id'], SenderFault: true, Code: error.code, Message: error.message })
  }
  // fauxqs rejects a malformed batch as a whole.
  if (rejectedEntries.size === 0 || !isWellFormed(entries)) return perform(call)

  const acceptedEntries = entries.filter((entry) => !rejectedEntries.has(entry))
  const output =
    acceptedEntries.length === 0
      ? { Successful: [] }
      : await perform({ ...call, input: { ...call.input, Entries: acceptedEntries } })
  return { ...output, Failed: [...objectsIn(output['Failed']), ...rejectedEntries.values()] }
}

const isWellFormed = (entries: JsonObject[]) =>
  entries.length <= maxBatchEntries && new Set(entries.map((entry) => entry['Id'])).size === entries.length

function checkMessage(message: JsonObject): AwsServiceError | undefined {
  const attributes = objectsIn(Object.values(message['MessageAttributes'] ?? {}))
  const texts = [message['MessageBody'], ...attributes.map((attribute) => attribute['StringValue'])]
  if (texts.some((text) => typeof text === 'string' && forbiddenCharacter.test(text))) {
    return new AwsServiceError('InvalidMessageContents', 'The message contains characters outside the allowed set.')
  }
  return checkRange('DelaySeconds', message['DelaySeconds'], maxDelaySeconds)
}

/** Rejects only malformed handles. As on AWS, an outdated handle is ignored. */
function checkHandle({ ReceiptHandle: handle }: JsonObject): AwsServiceError | undefined {
  if (typeof handle !== 'string' || handle === '' || receiptHandlePattern.test(handle)) return undefined
  return new AwsServiceError('ReceiptHandleIsInvalid', 'The input receipt handle is invalid.')
}

function checkRange(name: string, value: unknown, maximum: number): AwsServiceError | undefined {
  const isInRange = value === undefined || (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= maximum)
  return isInRange ? undefined : invalidParameterError(`${name} must be a whole number from 0 to ${maximum}.`)
}

const invalidParameterError = (message: string) => new AwsServiceError('InvalidParameterValue', message)
