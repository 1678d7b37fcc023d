import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { getPreference, setPreference } from '../../../lib/preferences.ts'
import { SelectField } from '../../../ui/field.tsx'
import { useKnownLabels } from '../../clusters/label-queries.ts'
import { NoClusters } from './empty.tsx'
import styles from './widgets.module.css'

const siteKey = 'platform/site'
const preferenceName = 'breakdown'
const maxValues = 20

const titles: Record<string, string> = {
  [siteKey]: 'Site',
  'platform/type': 'Type',
  'platform/os': 'Operating system',
  'platform/arch': 'Architecture',
  'platform/relay-version': 'Relay version',
}

/** The number of clusters of each site, or of each value of another label. */
export function ClusterBreakdown() {
  const labels = useKnownLabels(true)
  const [chosenKey, setChosenKey] = useState(() => getPreference(preferenceName) ?? siteKey)
  const label = labels.find(({ key }) => key === chosenKey) ?? labels.find(({ key }) => key === siteKey) ?? labels[0]
  if (label === undefined) return <NoClusters />
  const values = label.values.toSorted((a, b) => b.clusterCount - a.clusterCount)
  const highestCount = values[0]?.clusterCount ?? 1
  const choose = (key: string) => {
    setPreference(preferenceName, key)
    setChosenKey(key)
  }
  return (
    <div className={styles['stack']}>
      <SelectField
        name="breakdown"
        label="By"
        value={label.key}
        options={labels.map(({ key }) => ({ value: key, label: titles[key] ?? key }))}
        onChange={choose}
      />
      <ul className={styles['breakdown']}>
        {values.slice(0, maxValues).map(({ value, clusterCount, name }) => (
          <li key={value}>
            <Link to="/clusters" search={{ selector: value === '' ? `${label.key}=` : `${label.key}=${value}` }}>
              {name ?? (value || 'empty')}
            </Link>
            <span className={styles['bar']} style={{ inlineSize: `${(100 * clusterCount) / highestCount}%` }} />
            <span>{clusterCount.toLocaleString('en')}</span>
          </li>
        ))}
      </ul>
      {values.length > maxValues && <p className={styles['nothing']}>and {values.length - maxValues} more</p>}
    </div>
  )
}
