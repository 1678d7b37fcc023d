import { useQuery } from '@tanstack/react-query'
import { useHasPermission, useMe } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { nameOf } from '@platform/contract/user-name'

const pageSize = 100
const staleTime = 60_000

/**
 * The name of a user, or undefined if the caller may not read users, or the user was removed. One request loads the
 * names of the newest users; others are loaded one by one.
 */
export function useUserName(userId: string): string | undefined {
  const me = useMe()
  const mayReadUsers = useHasPermission('users:admin')
  const { data } = useQuery({
    queryKey: ['users', 'names'],
    enabled: mayReadUsers,
    queryFn: async ({ signal }) => {
      const { items } = await unwrap(api.GET('/api/v1/users', { params: { query: { pageSize } }, signal }))
      return Object.fromEntries(items.map((user) => [user.id, nameOf(user)]))
    },
    staleTime,
    retry: false,
  })
  const { data: older } = useQuery({
    queryKey: ['users', 'names', userId],
    enabled: data !== undefined && data[userId] === undefined && userId !== me.id && userId.startsWith('user_'),
    queryFn: async ({ signal }) =>
      nameOf(await unwrap(api.GET('/api/v1/users/{id}', { params: { path: { id: userId } }, signal }))),
    staleTime,
    retry: false,
  })
  return userId === me.id ? nameOf(me) : (data?.[userId] ?? older)
}
