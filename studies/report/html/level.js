// The level that a study is looked at: chosen in any of its pictures, or beside its answer, and followed by all others.
function levelOf(study) {
  study.shared ??= { at: study.headline, followers: [] };
  return study.shared;
}

// The level that a study opens with: that of its answer.
const usual = (study) => levelOf(study).at;

function setLevel(study, at) {
  if (levelOf(study).at === at) return;
  study.shared.at = at;
  for (const follow of study.shared.followers) follow(at);
}

// Choose a level here, and follow what is chosen elsewhere.
function chooseLevel(study) {
  const choice = choose("Privacy level", study.levels.map((one) => one.title), levelOf(study).at, (at) => setLevel(study, at));
  study.shared.followers.push(choice.pick);
  return choice;
}

function answers(study, index, host) {
  if (study.levels.length > 1) host.append(chooseLevel(study));
  levelOf(study).followers.push((at) => {
    for (const place of document.querySelectorAll(`[data-said="${index}"]`)) place.textContent = study.answers[at];
  });
}
