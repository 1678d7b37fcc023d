import { type FloorAnswer, type FloorEvent, respond } from './gateway.ts'

/** Parses a body and does nothing with it. */
export async function handler({ body = '' }: FloorEvent): Promise<FloorAnswer> {
  const { jobs } = JSON.parse(body)
  return respond(202, { submittedCount: jobs.length })
}
