import * as z from 'zod'

/** Names a job that is announced. Messages carry ids only. */
export const JobMessage = z.object({ organisationId: z.string().min(1), jobId: z.string().min(1) })
