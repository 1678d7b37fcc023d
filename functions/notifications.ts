import { listNotifications, updateNotifications } from '@platform/contract/notification'
import * as Notification from '@platform/core/notifications/notification'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(listNotifications, async ({ caller, query }) => result(200, await Notification.list(caller, query))),
  route(updateNotifications, async ({ caller, body }) => {
    await Notification.markRead(caller, body)
    return result(204)
  }),
)
