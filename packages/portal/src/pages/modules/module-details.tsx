import type { ReactNode } from 'react'
import { Link } from '@tanstack/react-router'
import type { Schemas } from '../../api/client.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { DescriptionList } from '../../ui/card.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { durationText, Time } from '../../ui/time.tsx'
import styles from './modules.module.css'
import type { CatalogItem } from './use-modules.ts'

type Detail = Schemas['ModuleDetail']

/** Details of the installed module and of the catalog's release. */
export const ModuleDetails = ({ module, offer }: { module: Detail | undefined; offer: CatalogItem | undefined }) => (
  <>
    <DescriptionList items={[...(module ? factsOf(module) : []), ...(offer ? offerFacts(offer) : [])]} />
    {module && (
      <>
        <section className={styles['part']} aria-label="Image">
          <h3>Image</h3>
          <CopyField label="Image" text={module.image} />
        </section>
        <Part title="Health checks" isEmpty={module.checks.length === 0} instead="No checks yet.">
          {module.checks.map((check) => (
            <li key={check.name} className={styles['item']}>
              <StatusBadge status={check.status} />
              <code>{check.name}</code> <span>{check.description}</span>
              <span className={styles['quiet']}>
                <Time at={check.checkedAt} />
              </span>
            </li>
          ))}
        </Part>
        <Part title="Navigation" isEmpty={module.navSlots.length === 0} instead="None">
          {module.navSlots.map(({ slotId, id, label, route }) => (
            <li key={`${slotId} ${id}`} className={styles['item']}>
              <Link to={route}>{label}</Link> <code>{route}</code>
            </li>
          ))}
        </Part>
        <Part title="Background jobs" isEmpty={module.backgroundJobs.length === 0} instead="None">
          {module.backgroundJobs.map(({ id, description, intervalSeconds }) => (
            <li key={id} className={styles['item']}>
              <code>{id}</code> <span>{description}</span>
              <span className={styles['quiet']}>
                every {durationText(intervalSeconds * 1000).replace(/ 0 (?:s|min)$/, '')}
              </span>
            </li>
          ))}
        </Part>
      </>
    )}
  </>
)

function factsOf(module: Detail): (readonly [string, ReactNode])[] {
  const { version, isolation, apiBasePath, installedAt, updatedAt } = module
  return [
    ['Version', version],
    ['API', <code key="api">{apiBasePath}</code>],
    ['Isolation', isolation ?? 'Not running'],
    ...(installedAt === undefined ? [] : ([['Installed', <Time key="installed" at={installedAt} />]] as const)),
    ['Changed', <Time key="updated" at={updatedAt} />],
  ]
}

const offerFacts = ({ version, catalogSource }: CatalogItem): (readonly [string, ReactNode])[] => [
  ['Catalog version', version],
  ['Source', <code key="source">{catalogSource}</code>],
]

interface PartProps {
  title: string
  isEmpty: boolean
  instead: string
  children: ReactNode
}

const Part = ({ title, isEmpty, instead, children }: PartProps) => (
  <section className={styles['part']} aria-label={title}>
    <h3>{title}</h3>
    {isEmpty ? <p className={styles['quiet']}>{instead}</p> : <ul className={styles['list']}>{children}</ul>}
  </section>
)
