import { authorizeChannel } from '@platform/core/relays/channel'
import { createAuthorizer } from '@platform/http/authorizer'

export const handler = createAuthorizer(authorizeChannel)
