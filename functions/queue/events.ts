import { projectOrganisation } from '@platform/core/background/projections'
import { consume } from '@platform/http/consume'
import { RecordsMessage } from '@platform/http/messages'

export const handler = consume(RecordsMessage, ({ organisationId }) => projectOrganisation(organisationId))
