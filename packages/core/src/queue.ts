import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { config } from './config.ts'
import { log } from './log.ts'

/** The only code that speaks SQS. Messages carry ids only. */

const client = new SQSClient({ maxAttempts: 2, requestHandler: { connectionTimeout: 1000, requestTimeout: 2000 } })

/** Names a job in a message. */
export interface JobReference {
  organisationId: string
  jobId: string
}

/**
 * Announces a job that is stored already. A failure is only logged: the job is accepted, and the sweep announces again
 * what nobody has heard of.
 */
export async function announceJob({ organisationId, jobId }: JobReference): Promise<void> {
  const MessageBody = JSON.stringify({ organisationId, jobId })
  try {
    await client.send(new SendMessageCommand({ QueueUrl: config.PLAT_QUEUE_JOBS, MessageBody }))
  } catch (error) {
    log('warn', 'A job could not be announced; the sweep will', { jobId, error: String(error) })
  }
}
