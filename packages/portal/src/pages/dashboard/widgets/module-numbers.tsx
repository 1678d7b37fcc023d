import { useSummary } from '../../../api/account.ts'
import { Loaded } from '../../../ui/state.tsx'
import { Numbers } from './numbers.tsx'
import { EmptyWidget } from './empty.tsx'

export const ModuleNumbers = () => (
  <Loaded query={useSummary()} what="the numbers">
    {({ modules }) =>
      modules === undefined || modules.installed === 0 ? (
        <EmptyWidget text="No modules installed." to={{ to: '/modules' }} label="Open catalog" />
      ) : (
        <Numbers
          items={[
            { name: 'Installed', count: modules.installed, to: { to: '/modules' } },
            { name: 'Unhealthy', count: modules.unhealthy, to: { to: '/modules' } },
            { name: 'Updates', tone: 'Running', count: modules.updatesAvailable, to: { to: '/modules' } },
          ]}
        />
      )
    }
  </Loaded>
)
