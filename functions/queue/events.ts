import { projectOrganisation } from '@platform/core/background/projections'
import { sweepClusters } from '@platform/core/background/due-items'
import { recordStartsAndEnds } from '@platform/core/jobs/recording'
import { consume } from '@platform/http/consume'
import { EventsMessage } from '@platform/http/messages'

export const handler = consume(EventsMessage, async (message) => {
  if ('sweep' in message) return sweepClusters()
  if ('jobs' in message) return recordStartsAndEnds(message.organisationId, message.jobs.split(','))
  await projectOrganisation(message.organisationId)
})
