import { projectOrganisation } from '@platform/core/background/projections'
import { sweepClusters } from '@platform/core/background/due-items'
import { consume } from '@platform/http/consume'
import { EventsMessage } from '@platform/http/messages'

export const handler = consume(EventsMessage, (message) =>
  'sweep' in message ? sweepClusters() : projectOrganisation(message.organisationId),
)
