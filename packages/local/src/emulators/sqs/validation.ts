import { AwsServiceError } from '../http/error.ts'
import { type JsonObject, objectsIn } from '../http/request.ts'
import type { AwsCall } from '../http/service.ts'

/** SQS rejects characters outside XML, such as lone surrogates. */
const forbiddenCharacter = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u
const receiptHandle = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/
const maximumDelaySeconds = 900
const maximumWaitSeconds = 20
const maximumBatchEntries = 10

type Check = (input: JsonObject) => AwsServiceError | undefined

/** Detects inputs that AWS rejects but fauxqs accepts, by action. Entries of a batch are checked individually. */
const checks: Readonly<Record<string, Check>> = {
  CreateQueue: ({ QueueName: name }) =>
    String(name).endsWith('.fifo') ? invalidParameter('FIFO queues are not supported here.') : undefined,
  SendMessage: checkMessage,
  SendMessageBatch: checkMessage,
  ReceiveMessage: ({ WaitTimeSeconds: wait }) => checkRange('WaitTimeSeconds', wait, maximumWaitSeconds),
  DeleteMessage: checkHandle,
  DeleteMessageBatch: checkHandle,
  ChangeMessageVisibility: checkHandle,
  ChangeMessageVisibilityBatch: checkHandle,
}

/** Performs a call unless AWS would reject it. For a batch, performs only the entries that AWS would accept. */
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
  const rejected = new Map<JsonObject, JsonObject>()
  for (const entry of entries) {
    const error = check(entry)
    if (error === undefined) continue
    rejected.set(entry, { Id: entry['Id'], SenderFault: true, Code: error.code, Message: error.message })
  }
  // fauxqs rejects a malformed batch as a whole.
  if (rejected.size === 0 || !isWellFormed(entries)) return perform(call)

  const accepted = entries.filter((entry) => !rejected.has(entry))
  const output =
    accepted.length === 0 ? { Successful: [] } : await perform({ ...call, input: { ...call.input, Entries: accepted } })
  return { ...output, Failed: [...objectsIn(output['Failed']), ...rejected.values()] }
}

const isWellFormed = (entries: JsonObject[]) =>
  entries.length <= maximumBatchEntries && new Set(entries.map((entry) => entry['Id'])).size === entries.length

function checkMessage(message: JsonObject): AwsServiceError | undefined {
  const attributes = objectsIn(Object.values(message['MessageAttributes'] ?? {}))
  const texts = [message['MessageBody'], ...attributes.map((attribute) => attribute['StringValue'])]
  if (texts.some((text) => typeof text === 'string' && forbiddenCharacter.test(text))) {
    return new AwsServiceError('InvalidMessageContents', 'The message contains characters outside the allowed set.')
  }
  return checkRange('DelaySeconds', message['DelaySeconds'], maximumDelaySeconds)
}

/** As on AWS, an outdated handle is ignored, and a handle that was never issued is an error. */
function checkHandle({ ReceiptHandle: handle }: JsonObject): AwsServiceError | undefined {
  if (typeof handle !== 'string' || handle === '' || receiptHandle.test(handle)) return undefined
  return new AwsServiceError('ReceiptHandleIsInvalid', 'The input receipt handle is invalid.')
}

function checkRange(name: string, value: unknown, maximum: number): AwsServiceError | undefined {
  const inRange = value === undefined || (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= maximum)
  return inRange ? undefined : invalidParameter(`${name} must be a whole number from 0 to ${maximum}.`)
}

const invalidParameter = (message: string) => new AwsServiceError('InvalidParameterValue', message)
