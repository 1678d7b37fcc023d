import { submissionMethods, type Submitter } from '@platform/contract/job'
import * as z from 'zod'
import type { Caller } from './caller.ts'

/** Fields of a stored job, batch or operation that identify its submitter. */
export const submitterFields = {
  createdBy: z.string(),
  username: z.string().optional(),
  via: z.enum(submissionMethods).optional(),
}

type StoredSubmitter = z.infer<z.ZodObject<typeof submitterFields>>

export const submitterOf = ({ userId, username, tokenId }: Caller): StoredSubmitter => ({
  createdBy: userId,
  ...(username !== undefined && { username }),
  ...(tokenId !== undefined && { via: 'token' as const }),
})

export const submitterView = ({ createdBy, username = '', via = 'session' }: StoredSubmitter): Submitter => ({
  id: createdBy,
  username,
  via,
})
