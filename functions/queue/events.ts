import { projectOrganisation } from '@platform/core/background/projections'
import { sweepClusters } from '@platform/core/background/due-items'
import { recordEnds } from '@platform/core/jobs/end'
import { recordStarts } from '@platform/core/jobs/start'
import { consume } from '@platform/http/consume'
import { EventsMessage } from '@platform/http/messages'

export const handler = consume(EventsMessage, async (message) => {
  if ('sweep' in message) return sweepClusters()
  if ('started' in message) return recordStarts(message.organisationId, message.started.split(','))
  if ('ended' in message) return recordEnds(message.organisationId, message.ended.split(','))
  await projectOrganisation(message.organisationId)
})
