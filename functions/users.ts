import { createApiToken, deleteApiToken, listApiTokens, revokeUserTokens } from '@platform/contract/api-token'
import { endSession, endUserSessions, listSessions } from '@platform/contract/session'
import {
  changePassword,
  createUser,
  deleteUser,
  getUser,
  listRoles,
  listUsers,
  updateUser,
} from '@platform/contract/user'
import * as ApiToken from '@platform/core/accounts/api-token'
import * as OwnPassword from '@platform/core/accounts/change-password'
import * as Session from '@platform/core/accounts/session'
import * as User from '@platform/core/accounts/user'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(changePassword, async ({ caller, body, origin }) => {
    await OwnPassword.changePassword(caller, body, origin)
    return result(204)
  }),
  route(listSessions, async ({ caller }) => result(200, await Session.list(caller))),
  route(endSession, async ({ caller, params }) => {
    await Session.end(caller, params.id)
    return result(204)
  }),
  route(listApiTokens, async ({ caller }) => result(200, await ApiToken.list(caller))),
  route(createApiToken, async ({ caller, body }) => result(201, await ApiToken.create(caller, body))),
  route(deleteApiToken, async ({ caller, params }) => {
    await ApiToken.remove(caller, params.id)
    return result(204)
  }),
  route(listRoles, ({ caller }) => result(200, User.roles(caller))),
  route(listUsers, async ({ caller, query }) => result(200, await User.list(caller, query))),
  route(createUser, async ({ caller, body }) => result(201, await UserAdmin.create(caller, body))),
  route(getUser, async ({ caller, params }) => result(200, await User.read(caller, params.id))),
  route(updateUser, async ({ caller, params, body }) => result(200, await UserAdmin.update(caller, params.id, body))),
  route(deleteUser, async ({ caller, params }) => {
    await UserAdmin.remove(caller, params.id)
    return result(204)
  }),
  route(endUserSessions, async ({ caller, params }) => {
    await UserAdmin.endUserSessions(caller, params.id)
    return result(204)
  }),
  route(revokeUserTokens, async ({ caller, params }) => {
    await UserAdmin.revokeTokens(caller, params.id)
    return result(204)
  }),
)
