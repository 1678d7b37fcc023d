import { authorizeChannel } from '@platform/core/relays/channel'
import { authorizer } from '@platform/http/authorizer'

export const handler = authorizer(authorizeChannel)
