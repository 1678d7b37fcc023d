import { deadLetterJob } from '@platform/core/jobs/dead-letter'
import { consume } from '@platform/http/consume'
import { JobMessage } from '@platform/http/messages'

export const handler = consume(JobMessage, deadLetterJob)
