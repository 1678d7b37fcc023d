import { nameOf } from '@platform/contract/user-name'
import { useQuery } from '@tanstack/react-query'
import { useHasPermission, useMe } from '../../api/account.ts'
import { allPages } from '../../api/all-pages.ts'
import { api, unwrap } from '../../api/client.ts'
import type { Completion } from '../../ui/completion.ts'

const maxPages = 5
const staleTime = 60_000

interface Person {
  id: string
  username: string
  displayName?: string
}

/**
 * Returns the newest users and the caller, or only the caller if the caller may not read users. Returns undefined until
 * the users are loaded.
 */
function usePeople(): Person[] | undefined {
  const me = useMe()
  const mayReadUsers = useHasPermission('users:admin')
  const { data, error } = useQuery({
    queryKey: ['users', 'people'],
    enabled: mayReadUsers,
    queryFn: ({ signal }) => loadPeople(signal),
    staleTime,
    retry: false,
  })
  if (data === undefined) return mayReadUsers && error === null ? undefined : [me]
  return [me, ...data.filter(({ id }) => id !== me.id)]
}

const loadPeople = (signal: AbortSignal): Promise<Person[]> =>
  allPages((query) => unwrap(api.GET('/api/v1/users', { params: { query }, signal })), maxPages)

/** Returns the user name for the id of the caller or of one of the newest users, or undefined for other ids. */
export const useUsername = (userId: string | undefined): string | undefined =>
  usePeople()?.find(({ id }) => id === userId)?.username

/**
 * Returns the name of a user, or undefined until it is loaded, if the user was removed, or if the caller may not read
 * other users. The names of the newest users are loaded together, others one by one.
 */
export function useUserName(userId: string): string | undefined {
  const people = usePeople()
  const mayReadUsers = useHasPermission('users:admin')
  const knownPerson = people?.find(({ id }) => id === userId)
  const { data: loadedName } = useQuery({
    queryKey: ['users', 'people', userId],
    enabled: mayReadUsers && people !== undefined && knownPerson === undefined && userId.startsWith('user_'),
    queryFn: async ({ signal }) =>
      nameOf(await unwrap(api.GET('/api/v1/users/{id}', { params: { path: { id: userId } }, signal }))),
    staleTime,
    retry: false,
  })
  return knownPerson === undefined ? loadedName : nameOf(knownPerson)
}

/** Returns the completions of a field for a user name, and a function that finds the id of a user name. */
export function usePersonCompletions(text: string): { completions: Completion[]; idOf: (username: string) => string } {
  const people = usePeople() ?? []
  const term = text.trim().toLowerCase()
  const matchingPeople = people.filter((person) => nameOf(person).toLowerCase().includes(term))
  return {
    completions: matchingPeople.map((person) => ({
      text: person.username,
      label: person.username,
      ...(person.displayName !== undefined && { hint: person.displayName }),
    })),
    idOf: (username) =>
      people.find((person) => person.username.toLowerCase() === username.trim().toLowerCase())?.id ?? username.trim(),
  }
}
