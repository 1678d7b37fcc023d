import { useSuspenseQuery } from '@tanstack/react-query'
import { configurationQuery } from '../../api/account.ts'
import { chooseTheme, type Theme, useTheme } from '../../lib/theme.ts'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { Time, useNow } from '../../ui/time.tsx'
import styles from './account.module.css'

const themes: Readonly<Record<Theme, string>> = { system: 'System theme', light: 'Light', dark: 'Dark' }

/** The theme of this browser, and the time zone of displayed times. */
export function Appearance() {
  const { timezone } = useSuspenseQuery(configurationQuery).data
  const theme = useTheme()
  const nowMs = useNow()
  return (
    <div className={styles['parts']}>
      <Card title="Theme">
        <fieldset className={styles['choices']}>
          <legend className="visually-hidden">Theme</legend>
          {(['system', 'light', 'dark'] as const).map((name) => (
            <label key={name}>
              <input type="radio" name="theme" checked={theme === name} onChange={() => chooseTheme(name)} />{' '}
              {themes[name]}
            </label>
          ))}
        </fieldset>
        <p className={styles['text']}>Saved in this browser only.</p>
      </Card>
      <Card title="Time zone">
        <p className={styles['text']}>Times use your browser’s time zone.</p>
        <DescriptionList
          items={[
            ['Your browser', new Intl.DateTimeFormat().resolvedOptions().timeZone],
            ['The platform', timezone ?? 'not set'],
            ['Now', <Time key="now" at={new Date(nowMs).toISOString()} isAbsolute />],
          ]}
        />
      </Card>
    </div>
  )
}
