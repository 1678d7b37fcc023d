import { ChannelEvent, handleChannelEvent } from '@platform/core/relays/channel'
import { onEvent } from '@platform/http/event'

export const handler = onEvent(ChannelEvent, handleChannelEvent)
