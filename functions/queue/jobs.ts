import { dispatch } from '@platform/core/jobs/dispatch'
import { consume } from '@platform/http/consume'
import { JobMessage } from '@platform/http/messages'

export const handler = consume(JobMessage, dispatch)
