import { dispatch } from '@platform/core/dispatch'
import { consume } from '@platform/http/consume'
import * as z from 'zod'

const JobReference = z.object({ organisationId: z.string().min(1), jobId: z.string().min(1) })

export const handler = consume(JobReference, dispatch)
