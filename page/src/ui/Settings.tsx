import type { VNode } from "preact";
import { LANGUAGES, t } from "../i18n";
import { ArchiveIcon, CheckIcon, DotsIcon, KeysIcon, OutIcon, TrashIcon } from "./icons";
import { Menu, MenuChoice, MenuItem } from "./Menu";
import { useApp } from "./shared";

/** What belongs to the page as a whole, and is seldom needed. */
export function Settings(): VNode {
  const app = useApp();
  const words = t().settings;
  const { theme, language, notifying } = app.preferences;
  return (
    <Menu label={words.label} icon={<DotsIcon />} testid="settings" place="settings">
      <MenuItem icon={<ArchiveIcon />} testid="archived" onClick={() => app.list.showArchived(!app.list.archived.value)}>{app.list.archived.value ? t().list.back : t().list.archivedLabel}</MenuItem>
      <MenuItem icon={<TrashIcon />} testid="recently-deleted" onClick={() => app.list.showDeleted(app.list.deleted.value === null)}>{app.list.deleted.value === null ? t().list.deletedLabel : t().list.back}</MenuItem>
      <hr />
      <p class="menu-title">{words.theme}</p>
      {(["system", "light", "dark"] as const).map((each) => <MenuChoice key={each} icon={<CheckIcon />} chosen={theme.value === each} testid={`theme-${each}`} onClick={() => app.preferences.setTheme(each)}>{words[each]}</MenuChoice>)}
      {LANGUAGES.length > 1 && <p class="menu-title">{words.language}</p>}
      {LANGUAGES.length > 1 && LANGUAGES.map(([code, name]) => <MenuChoice key={code} icon={<CheckIcon />} chosen={language.value === code} testid={`language-${code}`} onClick={() => app.preferences.setLanguage(code)}>{name}</MenuChoice>)}
      <hr />
      {"Notification" in window && <MenuChoice box icon={<CheckIcon />} chosen={notifying.value} testid="notifications" onClick={() => void app.setNotifying(!notifying.value)}>{words.notifications}</MenuChoice>}
      <MenuItem icon={<KeysIcon />} testid="keys" onClick={() => (app.showingKeys.value = true)}>{words.keys}</MenuItem>
      <MenuItem icon={<OutIcon />} testid="sign-out" onClick={() => void app.signOut()}>{words.signOut}</MenuItem>
    </Menu>
  );
}
