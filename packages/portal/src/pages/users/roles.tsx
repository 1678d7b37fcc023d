import { useQuery } from '@tanstack/react-query'
import { api, unwrap, type Schemas } from '../../api/client.ts'
import { permissionTexts } from '../../api/permissions.ts'
import { CheckGroup } from '../../ui/check-group.tsx'
import { Loaded } from '../../ui/state.tsx'

export type Role = Schemas['RoleDescription']['name']

export const rolesQuery = {
  queryKey: ['roles'],
  queryFn: () => unwrap(api.GET('/api/v1/roles')),
  staleTime: Infinity,
}

interface RolesFieldProps {
  chosen: readonly Role[]
  onChange: (roles: Role[]) => void
  problem: string | undefined
}

/** The roles, each with what it permits. One that the user may not give stays as it is. */
export function RolesField({ chosen, onChange, problem }: RolesFieldProps) {
  const query = useQuery(rolesQuery)
  return (
    <Loaded query={query} what="the roles">
      {({ items }) => (
        <CheckGroup
          label="Roles"
          choices={items.map(({ name, permissions, grantable }) => ({
            value: name,
            label: name,
            hint: grantable ? whatFor(permissions) : 'More than you may do yourself: you cannot give it.',
            isDisabled: !grantable,
          }))}
          chosen={chosen}
          onChange={onChange}
          problem={problem}
        />
      )}
    </Loaded>
  )
}

const whatFor = (permissions: Schemas['RoleDescription']['permissions']): string =>
  permissions.map((permission) => permissionTexts[permission]).join('. ')
