import type { Message, MessageAttributeValue } from '@aws-sdk/client-sqs'

export interface SqsRecord {
  messageId: string
  receiptHandle: string
  body: string
  attributes: Record<string, string>
  messageAttributes: Record<string, SqsRecordAttribute>
  md5OfMessageAttributes?: string
  md5OfBody: string
  eventSource: 'aws:sqs'
  eventSourceARN: string
  awsRegion: string
}

export interface SqsRecordAttribute {
  stringValue?: string
  /** Base64. */
  binaryValue?: string
  stringListValues: string[]
  binaryListValues: string[]
  dataType: string
}

export interface SqsEvent {
  Records: SqsRecord[]
}

/** Lambda delivers the listed messages again. */
export interface SqsBatchResponse {
  batchItemFailures?: { itemIdentifier: string }[]
}

export function sqsEvent(messages: readonly Message[], queueArn: string): SqsEvent {
  return { Records: messages.map((message) => sqsRecord(message, queueArn)) }
}

/** As on Lambda, no list means success, and a list with an unknown id fails the whole batch. */
export function failedIds(response: SqsBatchResponse | null | void, messages: readonly Message[]): ReadonlySet<string> {
  const allIds = new Set(messages.map((message) => message.MessageId ?? ''))
  const reportedIds = (response?.batchItemFailures ?? []).map((failure) => failure.itemIdentifier)
  return reportedIds.every((id) => allIds.has(id)) ? new Set(reportedIds) : allIds
}

function sqsRecord(message: Message, queueArn: string): SqsRecord {
  const attributes = Object.entries(message.MessageAttributes ?? {})
  return {
    messageId: message.MessageId ?? '',
    receiptHandle: message.ReceiptHandle ?? '',
    body: message.Body ?? '',
    attributes: { ...message.Attributes },
    messageAttributes: Object.fromEntries(attributes.map(([name, value]) => [name, recordAttribute(value)])),
    ...(message.MD5OfMessageAttributes && { md5OfMessageAttributes: message.MD5OfMessageAttributes }),
    md5OfBody: message.MD5OfBody ?? '',
    eventSource: 'aws:sqs',
    eventSourceARN: queueArn,
    awsRegion: queueArn.split(':')[3] ?? '',
  }
}

function recordAttribute({ StringValue, BinaryValue, DataType = 'String' }: MessageAttributeValue): SqsRecordAttribute {
  return {
    ...(StringValue !== undefined && { stringValue: StringValue }),
    ...(BinaryValue !== undefined && { binaryValue: Buffer.from(BinaryValue).toString('base64') }),
    stringListValues: [],
    binaryListValues: [],
    dataType: DataType,
  }
}
